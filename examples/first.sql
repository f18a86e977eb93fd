-- Rows out of thin air: made-up sales, summed up per store, on your screen. Needs no broker.
--
--   headwater run examples/first.sql

CREATE TABLE sales (
  store INT,
  price DECIMAL(8, 2)
) WITH (
  'connector' = 'datagen',
  'number-of-rows' = '1000',
  'rows-per-second' = '200',
  'fields.store.min' = '1',
  'fields.store.max' = '3',
  'fields.price.min' = '1',
  'fields.price.max' = '100'
);

CREATE TABLE screen (
  store INT,
  sold BIGINT,
  revenue DECIMAL(38, 2)
) WITH (
  'connector' = 'print'
);

INSERT INTO screen
SELECT store, COUNT(*), SUM(price) FROM sales GROUP BY store;
