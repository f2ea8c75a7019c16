-- Memories that a person has made a guard: tool calls that they concern are refused once.

create table guards (
  id integer primary key autoincrement,
  memory text not null unique,           -- the uid of the memory
  mode text not null,                    -- stop, or tell
  since text not null,
  overridden integer not null,           -- how often a refused call was made again
  checksum integer not null
);
