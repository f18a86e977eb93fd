INSERT INTO totals
SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer;
