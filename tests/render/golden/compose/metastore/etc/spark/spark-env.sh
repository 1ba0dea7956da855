# Managed by the lakehouse kit: a change made here is lost at the next run.
# A value that the caller has set wins, and comes first where it is a list of paths: every unit and every user may
# name its own.
[ -n "${HADOOP_CONF_DIR:-}" ] || HADOOP_CONF_DIR=/etc/hadoop
export HADOOP_CONF_DIR
[ -n "${JAVA_HOME:-}" ] || JAVA_HOME=/usr/lib/jvm/java-21-openjdk-amd64
export JAVA_HOME
[ -n "${SPARK_CONF_DIR:-}" ] || SPARK_CONF_DIR=/etc/spark
export SPARK_CONF_DIR
[ -n "${SPARK_DAEMON_JAVA_OPTS:-}" ] || SPARK_DAEMON_JAVA_OPTS='-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:MinMetaspaceFreeRatio=10 -XX:MaxMetaspaceFreeRatio=20 -Dspark.history.fs.logDirectory=hdfs://lakehouse/lakehouse/spark/events -Dspark.history.ui.port=18080'
export SPARK_DAEMON_JAVA_OPTS
[ -n "${SPARK_HOME:-}" ] || SPARK_HOME=/opt/spark/current
export SPARK_HOME
[ -n "${SPARK_LOCAL_DIRS:-}" ] || SPARK_LOCAL_DIRS=/var/lib/lakehouse/spark/local
export SPARK_LOCAL_DIRS
[ -n "${SPARK_LOCAL_IP:-}" ] || SPARK_LOCAL_IP=metastore
export SPARK_LOCAL_IP
PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}"/opt/spark/current/python
export PYTHONPATH
