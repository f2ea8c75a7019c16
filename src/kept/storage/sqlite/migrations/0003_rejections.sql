-- Statements that were forgotten or rejected, and must not come back unasked.

create table rejections (
  id integer primary key autoincrement,
  memory text not null unique,           -- the uid of the memory that said it
  fingerprint text not null,
  words text not null,                   -- JSON list: its skeleton
  scope text not null,
  reason text not null,                  -- forgotten, overruled, or wrong
  who text not null,
  at text not null,
  checksum integer not null
);
