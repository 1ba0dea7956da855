-- Product type profit measure
SELECT supplied_by, o_year, sum(amount) AS sum_profit
FROM (
  SELECT
    n_name AS supplied_by,
    extract(YEAR FROM o_orderdate) AS o_year,
    l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
  FROM part
  JOIN lineitem ON l_partkey = p_partkey
  JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
  JOIN orders ON o_orderkey = l_orderkey
  JOIN supplier ON s_suppkey = l_suppkey
  JOIN nation ON n_nationkey = s_nationkey
  WHERE p_name LIKE '%green%'
) profit
GROUP BY supplied_by, o_year
ORDER BY supplied_by, o_year DESC
