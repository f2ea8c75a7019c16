-- Which roles are tied to which spaces. Only the owner reads it, and the function that the policy of each table calls.
create table ties (
  space bigint not null,
  role regrole not null,                    -- by its number, so that a renamed role stays tied; dumped by its name
  primary key (space, role)
);
