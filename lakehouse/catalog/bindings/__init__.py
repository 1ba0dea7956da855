"""Documents of a commit as the objects of Hive's Thrift interface, and what these cannot hold."""
