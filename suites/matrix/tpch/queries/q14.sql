-- Promotion effect
SELECT
  100.0 * CAST(
    sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS DOUBLE
  ) / CAST(sum(l_extendedprice * (1 - l_discount)) AS DOUBLE) AS promo_revenue
FROM lineitem
JOIN part ON p_partkey = l_partkey
WHERE l_shipdate >= DATE '1995-09-01'
  AND l_shipdate < DATE '1995-10-01'
