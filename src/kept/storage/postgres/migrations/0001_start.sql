-- Memories of many spaces in one database, walled off from each other by row-level security.
-- Rules, which tests/postgres/test_schema.py checks: every table and every key begins with `space`, so that the same
-- schema can be sharded by it; no triggers, no sequences, no foreign keys; JSON as text, because jsonb refuses \u0000.

create table migrations (
  space bigint not null check (space = 0),  -- of no space: everybody may read it
  version integer not null,
  checksum text not null,
  applied_at timestamptz not null,
  primary key (space, version)
);

-- Where each space has come to. A writer locks this row for its turn.
create table heads (
  space bigint not null primary key,
  name text not null,                       -- `project/…`; `space` is a hash of it
  created_at timestamptz not null,
  tombstone_key bytea not null,
  last_ids text not null,                   -- JSON: kind of row → the last id given
  last_event bigint not null,
  last_hash text not null,
  vector_model text,
  turns bigint not null                     -- turns to write so far: every one of them commits something
) with (fillfactor = 50);

create table memories (
  space bigint not null,
  id bigint not null,
  uid text not null,
  content text not null,
  fingerprint text not null,
  kind text not null,
  tier text not null,
  scope text not null,
  status text not null,
  reason text,
  importance double precision not null,
  confidence double precision not null,
  trust text not null,
  feedback bigint not null,
  use_count bigint not null,
  tags text[] not null,
  files text[] not null,
  topic text,
  key text,                                 -- idempotency
  item_type text,
  title text,
  superseded_by text,
  source text not null,
  agent text,
  session_id text,
  task_id text,
  narrative_id text,
  source_file text,
  source_line bigint,
  data text,                                -- JSON object
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_hit_at timestamptz,
  last_used_at timestamptz,
  verified_at timestamptz,
  archived_at timestamptz,
  words text not null,                      -- prepared tokens, one column of the index each
  tag_words text not null,
  file_words text not null,
  source_words text not null,
  kind_words text not null,
  n_words integer not null,
  n_tokens integer not null,
  shelf smallint not null,                  -- rows.SHELVES
  primary key (space, id)
);
create unique index memories_by_uid on memories (space, uid);
create index memories_by_fingerprint on memories (space, fingerprint);                          -- is there a twin?
create unique index memories_by_key on memories (space, key) where key is not null;             -- is this a repetition?
create index memories_by_topic on memories (space, topic) where topic is not null;              -- what is superseded?
create index memories_by_session on memories (space, session_id) where session_id is not null;  -- what did it write?
create index memories_by_task on memories (space, task_id) where task_id is not null;
create index memories_by_narrative on memories (space, narrative_id) where narrative_id is not null;
create index memories_off_the_shelf on memories (space, shelf, id) where shelf <> 0;            -- archive, library
create index memories_pinned on memories (space, id) where status = 'pinned';                   -- always injected

-- Which rows of a shelf hold a word. Under forced row-level security PostgreSQL would not use a GIN index.
create table postings (
  space bigint not null,
  shelf smallint not null,
  word text collate "C" not null,
  id bigint not null,
  primary key (space, shelf, word, id)
);

-- Rows and words of each shelf, for BM25; `counted_at`: the rows when its hot words were counted.
create table corpus (
  space bigint not null,
  shelf smallint not null,
  rows bigint not null,
  words bigint not null,
  tokens bigint not null,
  counted_at bigint,
  primary key (space, shelf)
) with (fillfactor = 50);

create table hot_words (
  space bigint not null,
  shelf smallint not null,
  word text collate "C" not null,
  rows_with bigint not null,
  primary key (space, shelf, word)
);

-- What memories bring along to every query: storage/weights.py. Five kilobytes a row, kept in the row.
create table weights (
  space bigint not null,
  chunk bigint not null,
  stamp bigint not null,
  lengths bytea not null,
  feedbacks bytea not null,
  others bytea not null,
  days bytea not null,
  primary key (space, chunk)
);
alter table weights                         -- STORAGE inside CREATE TABLE needs PostgreSQL 16
  alter column lengths set storage plain,
  alter column feedbacks set storage plain,
  alter column others set storage plain,
  alter column days set storage plain;

-- Under a few of its words each live memory is listed, as numbers: what may a new text repeat or contradict?
create table handles (
  space bigint not null,
  handle bigint not null,
  id bigint not null,
  primary key (space, handle, id)
);

-- Conflicts, aliases, sessions, tasks, pauses, allowances: few enough to read all of a kind at once.
create table records (
  space bigint not null,
  noun text not null,
  id bigint not null,
  name text not null,                       -- its subject in the journal
  body text not null,                       -- JSON
  primary key (space, noun, id)
);
create unique index records_by_name on records (space, noun, name);

-- Transcripts: rows are only ever added.
create table messages (
  space bigint not null,
  id bigint not null,
  session text not null,
  n bigint not null,
  message_id text not null,
  role text not null,
  content text not null,
  name text,
  input text,                               -- JSON object
  at timestamptz,
  speaker text,
  is_error boolean not null,
  trust text not null,
  words text not null,
  n_words integer not null,
  primary key (space, id)
);
create unique index messages_in_order on messages (space, session, n);
create unique index messages_once on messages (space, session, message_id, role);  -- adding twice adds once

create table packed_sessions (
  space bigint not null,
  session text not null,
  body bytea not null,
  primary key (space, session)
);

create table vectors (
  space bigint not null,
  id bigint not null,
  model text not null,
  fingerprint text not null,
  vector bytea not null,
  primary key (space, id)
);
create table vectorless (                   -- memories that wait for a vector; none unless a model is chosen
  space bigint not null,
  id bigint not null,
  primary key (space, id)
);

create table memory_links (
  space bigint not null,
  memory_id bigint not null,
  related_id bigint not null,
  strength double precision not null,
  at timestamptz not null,
  primary key (space, memory_id, related_id)
);
create index memory_links_back on memory_links (space, related_id);

create table receipts (
  space bigint not null,
  id bigint not null,
  at timestamptz not null,
  body text not null,                       -- JSON
  uids text not null,                       -- JSON list: it goes when one of these memories is erased
  session text,
  primary key (space, id)
);
create index receipts_by_session on receipts (space, session, id) where session is not null;

create table counters (
  space bigint not null,
  name text not null,
  number bigint not null,
  primary key (space, name)
);

create table file_notes (                   -- about files outside of the database, such as how a view was last written
  space bigint not null,
  name text collate "C" not null,
  note text not null,
  primary key (space, name)
);

create table tombstones (
  space bigint not null,
  mark text not null,
  primary key (space, mark)
);

-- The journal. The chain runs over digests, so that a payload can be erased and the chain still verifies.
create table events (
  space bigint not null,
  seq bigint not null,
  "group" text not null,
  at timestamptz not null,
  actor text not null,
  action text not null,
  subject text not null,
  undoes text,
  digest text not null,
  prev text not null,
  hash text not null,
  primary key (space, seq)
);
create index events_by_subject on events (space, subject, seq);
create index events_by_group on events (space, "group");

create table event_payloads (
  space bigint not null,
  seq bigint not null,
  salt text not null,
  changed bytea not null,                   -- JSON: field → [before, after]
  primary key (space, seq)
);
