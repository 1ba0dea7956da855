-- Small-quantity-order revenue
SELECT CAST(sum(l_extendedprice) AS DOUBLE) / 7.0 AS avg_yearly
FROM lineitem
JOIN part ON p_partkey = l_partkey
WHERE p_brand = 'Brand#23'
  AND p_container = 'MED BOX'
  AND l_quantity < (
    SELECT 0.2 * avg(CAST(l_quantity AS DOUBLE))
    FROM lineitem
    WHERE l_partkey = p_partkey
  )
