-- Tables of the session, and one like another.
CREATE TEMPORARY TABLE server_logs (client_ip STRING, status_code STRING, size INT) WITH ('connector' = 'datagen');
CREATE TEMPORARY TABLE errors WITH ('connector' = 'blackhole') LIKE server_logs (EXCLUDING OPTIONS);
INSERT INTO errors SELECT * FROM server_logs WHERE status_code LIKE '5%';
