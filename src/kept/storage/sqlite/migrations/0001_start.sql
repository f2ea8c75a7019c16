-- A space: its memories, what is known of them, and the journal of every change.

create table meta (
  name text primary key,
  value text not null
) without rowid;

create table migrations (
  version integer primary key,
  checksum text not null,
  applied_at text not null
);

create table memories (
  id integer primary key autoincrement,  -- never given twice: agents read and type it
  uid blob not null unique,              -- 16 bytes, if it is a UUID
  content blob not null,                 -- text; compressed with `words` as the dictionary if it is long
  fingerprint blob not null,
  kind text not null,
  tier text not null,
  scope text not null,
  status text not null,
  reason text,
  importance real not null,
  confidence real not null,
  trust text not null,                   -- whose words: user, agent, tool, unknown
  feedback integer not null,
  use_count integer not null,
  tags text not null,                    -- JSON list
  files text not null,                   -- JSON list
  topic text,
  key text,                              -- idempotency
  item_type text,
  title text,
  superseded_by text,
  source text not null,                  -- provenance: user, agent, conversation, tool, import, …
  agent text,
  session_id text,
  task_id text,
  narrative_id text,
  source_file text,
  source_line integer,
  data text,                             -- JSON object
  created_at integer not null,           -- microseconds since 1970, as all moments here
  updated_at integer not null,
  last_hit_at integer,
  last_used_at integer,
  verified_at integer,
  archived_at integer,
  words text not null,                   -- prepared tokens, one column of the index each
  tag_words text not null,
  file_words text not null,
  source_words text not null,
  kind_words text not null,
  n_words integer not null,              -- words of the text itself
  n_tokens integer not null,             -- tokens of all five columns
  checksum integer not null,             -- of all the others: SQLite itself would not notice a changed byte
  shelf text not null generated always as (
    case
      when reason = 'forgotten' then 'forgotten'
      when status = 'archived' then 'archive'
      when scope = 'memory' then 'live'
      else 'library'
    end
  ) stored
);

create index memories_by_fingerprint on memories (fingerprint);                             -- is there a twin?
create unique index memories_by_key on memories (key) where key is not null;                 -- is this a repetition?
create index memories_by_topic on memories (topic) where topic is not null;                 -- which one does a topic supersede?
create index memories_by_session on memories (session_id) where session_id is not null;     -- what did this session write?
create index memories_by_task on memories (task_id) where task_id is not null;              -- what belongs to this task?
create index memories_by_narrative on memories (narrative_id) where narrative_id is not null;
create index memories_off_the_shelf on memories (shelf, id) where shelf <> 'live';          -- the archive, page by page
create index memories_pinned on memories (id) where status = 'pinned';                      -- what is always injected

create view memories_archive as
select *
from memories
where shelf = 'archive';

-- One index a shelf, so that statistics and searches of one never see the words of another. Each gets its rows
-- through a view of that shelf: 'rebuild' and 'integrity-check' read all rows that `content` names.
create view live_rows as
select id, words, tag_words, file_words, source_words, kind_words
from memories
where shelf = 'live';
create view library_rows as
select id, words, tag_words, file_words, source_words, kind_words
from memories
where shelf = 'library';
create view archive_rows as
select id, words, tag_words, file_words, source_words, kind_words
from memories
where shelf = 'archive';
create virtual table live_fts using fts5(
  words, tag_words, file_words, source_words, kind_words,
  content = 'live_rows', content_rowid = 'id', detail = none, tokenize = $TOKENIZE
);
create virtual table library_fts using fts5(
  words, tag_words, file_words, source_words, kind_words,
  content = 'library_rows', content_rowid = 'id', detail = none, tokenize = $TOKENIZE
);
create virtual table archive_fts using fts5(
  words, tag_words, file_words, source_words, kind_words,
  content = 'archive_rows', content_rowid = 'id', detail = none, tokenize = $TOKENIZE
);
create virtual table live_vocabulary using fts5vocab('live_fts', 'row');
create virtual table library_vocabulary using fts5vocab('library_fts', 'row');
create virtual table archive_vocabulary using fts5vocab('archive_fts', 'row');
-- Is there still such a word? Answered without counting the rows that hold it.
create virtual table live_instances using fts5vocab('live_fts', 'instance');
create virtual table library_instances using fts5vocab('library_fts', 'instance');
create virtual table archive_instances using fts5vocab('archive_fts', 'instance');

-- Deleted words are overwritten in the index, not only marked.
insert into live_fts (live_fts, rank) values ('secure-delete', 1);
insert into library_fts (library_fts, rank) values ('secure-delete', 1);
insert into archive_fts (archive_fts, rank) values ('secure-delete', 1);

-- Rows and words of each shelf, for BM25; summing them at each search would read every row.
create table corpus (
  shelf text primary key,
  rows integer not null,
  words integer not null,
  tokens integer not null
) without rowid;
insert into corpus (shelf, rows, words, tokens)
  values ('live', 0, 0, 0), ('library', 0, 0, 0), ('archive', 0, 0, 0), ('forgotten', 0, 0, 0),
    ('messages', 0, 0, 0);

-- How many rows hold a word, for the words that many rows hold: counting those anew would read every posting.
create table hot_words (
  shelf text not null,
  word text not null,
  rows_with integer not null,
  primary key (shelf, word)
) without rowid;

-- What memories bring along to every query (length, feedback, age, …), for weighing thousands without reading their rows.
create table weights (
  chunk integer primary key,
  stamp integer not null,                -- a checksum of the rest: whoever has these numbers need not read them again
  lengths blob not null,                 -- in the order of ids: a byte a memory
  feedbacks blob not null,               -- a byte
  others blob not null,                  -- a byte
  days blob not null                     -- two bytes
);

-- Under a few of its words each live memory is listed, as numbers: what may a new text repeat or contradict?
create table handles (
  handle integer not null,               -- a hash of the scope and a long word
  id integer not null,
  primary key (handle, id)
) without rowid;

create trigger memories_added after insert on memories begin
  update corpus set rows = rows + 1, words = words + new.n_words, tokens = tokens + new.n_tokens where shelf = new.shelf;
  insert into live_fts (rowid, words, tag_words, file_words, source_words, kind_words)
    select new.id, new.words, new.tag_words, new.file_words, new.source_words, new.kind_words where new.shelf = 'live';
  insert into library_fts (rowid, words, tag_words, file_words, source_words, kind_words)
    select new.id, new.words, new.tag_words, new.file_words, new.source_words, new.kind_words where new.shelf = 'library';
  insert into archive_fts (rowid, words, tag_words, file_words, source_words, kind_words)
    select new.id, new.words, new.tag_words, new.file_words, new.source_words, new.kind_words where new.shelf = 'archive';
end;

create trigger memories_removed after delete on memories begin
  update corpus set rows = rows - 1, words = words - old.n_words, tokens = tokens - old.n_tokens where shelf = old.shelf;
  insert into live_fts (live_fts, rowid, words, tag_words, file_words, source_words, kind_words)
    select 'delete', old.id, old.words, old.tag_words, old.file_words, old.source_words, old.kind_words where old.shelf = 'live';
  insert into library_fts (library_fts, rowid, words, tag_words, file_words, source_words, kind_words)
    select 'delete', old.id, old.words, old.tag_words, old.file_words, old.source_words, old.kind_words where old.shelf = 'library';
  insert into archive_fts (archive_fts, rowid, words, tag_words, file_words, source_words, kind_words)
    select 'delete', old.id, old.words, old.tag_words, old.file_words, old.source_words, old.kind_words where old.shelf = 'archive';
end;

create trigger memories_changed after update of
  status, reason, scope, words, tag_words, file_words, source_words, kind_words, n_words, n_tokens on memories
when old.shelf <> new.shelf
  or old.words <> new.words
  or old.tag_words <> new.tag_words
  or old.file_words <> new.file_words
  or old.source_words <> new.source_words
  or old.kind_words <> new.kind_words
  or old.n_words <> new.n_words
  or old.n_tokens <> new.n_tokens
begin
  update corpus set rows = rows - 1, words = words - old.n_words, tokens = tokens - old.n_tokens where shelf = old.shelf;
  insert into live_fts (live_fts, rowid, words, tag_words, file_words, source_words, kind_words)
    select 'delete', old.id, old.words, old.tag_words, old.file_words, old.source_words, old.kind_words where old.shelf = 'live';
  insert into library_fts (library_fts, rowid, words, tag_words, file_words, source_words, kind_words)
    select 'delete', old.id, old.words, old.tag_words, old.file_words, old.source_words, old.kind_words where old.shelf = 'library';
  insert into archive_fts (archive_fts, rowid, words, tag_words, file_words, source_words, kind_words)
    select 'delete', old.id, old.words, old.tag_words, old.file_words, old.source_words, old.kind_words where old.shelf = 'archive';
  update corpus set rows = rows + 1, words = words + new.n_words, tokens = tokens + new.n_tokens where shelf = new.shelf;
  insert into live_fts (rowid, words, tag_words, file_words, source_words, kind_words)
    select new.id, new.words, new.tag_words, new.file_words, new.source_words, new.kind_words where new.shelf = 'live';
  insert into library_fts (rowid, words, tag_words, file_words, source_words, kind_words)
    select new.id, new.words, new.tag_words, new.file_words, new.source_words, new.kind_words where new.shelf = 'library';
  insert into archive_fts (rowid, words, tag_words, file_words, source_words, kind_words)
    select new.id, new.words, new.tag_words, new.file_words, new.source_words, new.kind_words where new.shelf = 'archive';
end;

-- What texts mean, as numbers, where somebody has switched that on. Made of the texts, and made anew when in doubt.
create table vectors (
  id integer primary key references memories (id) on delete cascade,
  model text not null,
  fingerprint blob not null,             -- of the text it was made of
  vector blob not null
);
create table vector_signs (              -- a sketch of each, for comparing thousands without reading them
  chunk integer primary key,
  signs blob not null                    -- in the order of ids: a bit for each number
);
create table vectorless (                -- memories that wait for a vector; none unless a model is chosen
  id integer primary key references memories (id) on delete cascade
);
create trigger memories_want_a_vector after insert on memories
when exists (select 1 from meta where name = 'vector_model')
begin
  insert into vectorless (id) values (new.id);
end;
create trigger memories_want_a_new_vector after update of fingerprint on memories
when old.fingerprint <> new.fingerprint and exists (select 1 from meta where name = 'vector_model')
begin
  insert or ignore into vectorless (id) values (new.id);
end;

create table conflicts (
  id integer primary key autoincrement,
  left text not null,
  right text not null,
  type text not null,
  rule text not null,
  detected_at text not null,
  resolved_at text,
  checksum integer not null
);
create index conflicts_by_left on conflicts (left);    -- which conflicts go when a memory is erased?
create index conflicts_by_right on conflicts (right);

create table aliases (
  id integer primary key autoincrement,
  word text not null unique,
  expands_to text not null,              -- JSON list
  checksum integer not null
);

create table sessions (
  id integer primary key autoincrement,
  name text not null unique,
  agent text,
  parent text,
  shared integer not null,               -- a fork: this many messages of the parent are also its first
  cwd text,                              -- the directory it ran in
  summary text not null,                 -- the uid of a memory
  findings text not null,                -- JSON list of uids
  promoted text not null,                -- JSON list of uids
  checked integer not null,              -- findings up to this message are safe
  flushed integer not null,              -- findings and a summary up to this message were stored
  ended integer not null,                -- up to this message, it was finished
  started_at text not null,
  finished_at text,
  packed_at text,
  checksum integer not null
);

-- Transcripts: rows are only ever added.
create table messages (
  id integer primary key autoincrement,
  session text not null,
  n integer not null,                    -- the place in the session, from 1
  message_id text not null,
  role text not null,
  content text not null,
  name text,
  input text,                            -- JSON object
  at text,
  speaker text,
  is_error integer not null,
  trust text not null,                   -- that of its speaker
  words text not null,
  n_words integer not null,
  checksum integer not null,
  unique (session, n),
  unique (session, message_id, role)     -- adding twice adds once
);
create virtual table messages_fts using fts5(
  words, content = 'messages', content_rowid = 'id', tokenize = $TOKENIZE
);
create virtual table messages_vocabulary using fts5vocab('messages_fts', 'row');
create virtual table messages_instances using fts5vocab('messages_fts', 'instance');
insert into messages_fts (messages_fts, rank) values ('secure-delete', 1);

create trigger messages_added after insert on messages begin
  update corpus set rows = rows + 1, words = words + new.n_words, tokens = tokens + new.n_words where shelf = 'messages';
  insert into messages_fts (rowid, words) values (new.id, new.words);
end;
create trigger messages_removed after delete on messages begin
  update corpus set rows = rows - 1, words = words - old.n_words, tokens = tokens - old.n_words where shelf = 'messages';
  insert into messages_fts (messages_fts, rowid, words) values ('delete', old.id, old.words);
end;

create table packed_sessions (           -- old transcripts, compressed and out of the index
  session text primary key,
  body blob not null
) without rowid;

create table tasks (
  id integer primary key autoincrement,
  name text not null unique,
  description text not null,
  state text not null,
  milestone text,
  priority integer,
  acceptance_criteria text not null,     -- JSON list
  blocked_by text not null,              -- JSON list: names of tasks
  created_at text not null,
  completed_at text,
  checksum integer not null
);

create table pauses (
  id integer primary key autoincrement,
  session text unique,                   -- null: the whole project
  since text not null,
  checksum integer not null
);

create table allowances (
  id integer primary key autoincrement,
  digest text not null unique,           -- SHA-256 of a value that only looks like a secret
  note text not null,
  checksum integer not null
);

create table memory_links (
  memory_id integer not null references memories (id) on delete cascade,
  related_id integer not null references memories (id) on delete cascade,
  strength real not null default 1.0,
  at text not null,
  primary key (memory_id, related_id)
) without rowid;
create index memory_links_back on memory_links (related_id);

-- What recall noted about itself, for `kept why`; not in the journal. Only the newest are kept, and for a month those
-- of texts that an agent was given without asking.
create table receipts (
  id integer primary key autoincrement,
  at text not null,
  body text not null,                    -- JSON
  uids text not null,                    -- JSON list: it goes when one of these memories is erased
  session text,                          -- the session that was given a text
  checksum integer not null
);
create index receipts_by_session on receipts (session, id) where session is not null;  -- what was this session given?

-- What is known about files outside: how a view was last written, which state of a source was read. Not in the journal.
create table file_notes (
  name text primary key,
  note text not null,
  checksum integer not null
) without rowid;

create table tombstones (
  mark text primary key
) without rowid;

-- The journal. The chain runs over digests, so that a payload can be erased and the chain still verifies.
create table events (
  seq integer primary key,
  "group" blob not null,                 -- ids and hashes in bytes, if they are hexadecimal
  at integer not null,                   -- microseconds since 1970
  actor text not null,
  action text not null,
  subject blob not null,                 -- the 16 bytes of a uid, or the name of another record
  undoes blob,
  digest blob not null,
  prev blob not null,
  hash blob not null
);
create index events_by_subject on events (subject, seq);  -- the history of one memory
create index events_by_group on events ("group");         -- what one undo takes back

create table event_payloads (
  seq integer primary key references events (seq),
  salt blob not null,
  changed blob not null                  -- JSON: field → [before, after]; compressed, see encoding.py
);
