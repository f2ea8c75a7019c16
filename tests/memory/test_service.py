"""In a service: many users, many threads, `async` programs, forks, and few file handles."""

import asyncio
import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kept
from kept.memory import pool as pools
from kept.memory.awaited import leased
from kept.memory.context import Context
from kept.memory.sessions import Session
from kept.memory.verbs import all_verbs
from tests.conftest import IS_LONG
from tests.folders import posix_only

WORDS = "The canary sings in the auth module"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KEPT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path) -> Iterator[kept.Kept]:
    with kept.open(user="ada") as opened:
        yield opened


# Async


def twins() -> Iterator[tuple[type, str]]:
    for verb in all_verbs():
        owner, _, name = verb.python.rpartition(".")
        if owner == "" or owner == "session()":
            yield (kept.Kept if owner == "" else Session), name


@pytest.mark.parametrize(("owner", "name"), list(twins()))
def test_every_verb_of_a_memory_and_of_a_session_has_its_twin_for_async_programs(owner: type, name: str) -> None:
    twin = inspect.getattr_static(owner, f"a{name}")
    assert twin.__wrapped__ is inspect.getattr_static(owner, name)
    assert twin.__doc__ == f"As `{name}`, in a worker thread: `await` it."


def test_an_async_program_uses_the_same_verbs(home: Path) -> None:
    async def run() -> list[str]:
        async with kept.open(user="ada") as memory:
            await memory.aremember(WORDS, kind="fact")
            session = await memory.asession("s1")
            await session.aappend("user", "Where does the canary sing?")
            found = await memory.arecall("canary", limit=3)
            return [hit.memory.content for hit in found.hits] + [said.content for said in await session.amessages()]

    assert asyncio.run(run()) == [WORDS, "Where does the canary sing?"]


def test_errors_of_a_worker_thread_reach_the_caller(memory: kept.Kept) -> None:
    with pytest.raises(kept.NotFound):
        asyncio.run(_get(memory))


async def _get(memory: kept.Kept) -> kept.Memory:
    return await memory.aget(99)


def slowed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let every write take 0.2 s longer. The event is set when one begins."""
    begun, write = threading.Event(), Context.write

    def slow(*args: Any, **kwargs: Any) -> Any:
        begun.set()
        time.sleep(0.2)
        return write(*args, **kwargs)

    monkeypatch.setattr(Context, "write", slow)
    return begun


def test_the_loop_goes_on_while_a_verb_works(memory: kept.Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch)

    async def run() -> int:
        ticks, task = 0, asyncio.ensure_future(memory.aremember(WORDS))
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return ticks

    assert asyncio.run(run()) > 5


def test_a_write_that_has_begun_is_finished_when_its_caller_is_cancelled(
    memory: kept.Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = slowed(monkeypatch)

    async def run() -> None:
        task = asyncio.ensure_future(memory.aremember(WORDS))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())  # waits for the worker threads at its end
    assert [found.content for found in memory.list()] == [WORDS]


def test_a_call_that_no_thread_has_begun_is_dropped_when_its_caller_is_cancelled(memory: kept.Kept) -> None:
    async def run() -> None:
        busy = threading.Event()
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(max_workers=1))
        first = loop.run_in_executor(None, busy.wait)
        waiting = asyncio.ensure_future(memory.aremember(WORDS))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        busy.set()
        await first

    asyncio.run(run())
    assert memory.list() == []


def test_changes_made_together_are_those_of_one_task(memory: kept.Kept) -> None:
    """One task undoes its own two changes; another task that writes in the meantime is not undone with it."""

    async def both() -> None:
        with memory.together():
            await memory.aremember("The parrot sleeps in the attic")
            await asyncio.sleep(0.05)
            await memory.aremember("The heron fishes at the lake")

    async def run() -> None:
        task = asyncio.ensure_future(both())
        await asyncio.sleep(0.02)
        await memory.aremember(WORDS)
        await task

    asyncio.run(run())
    by_group: dict[str, int] = {}
    for event in memory.history():
        by_group[event.group] = by_group.get(event.group, 0) + 1
    assert sorted(by_group.values()) == [1, 2]


def one_worker() -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(max_workers=1))


def test_turns_of_one_session_take_their_turn_in_one_loop_with_one_worker_thread(memory: kept.Kept) -> None:
    async def ask(number: int) -> str:
        session = await memory.asession("s1")
        async with session.aturn(f"Question {number}") as turn:
            context = await turn.acontext("Be brief.", budget_tokens=300)
            await asyncio.sleep(0.01)
            await turn.apersist(f"Answer {number}")
        return str(context.messages_for("openai")["messages"][-1]["content"])

    async def run() -> list[str]:
        one_worker()
        async with asyncio.timeout(10):
            return await asyncio.gather(*map(ask, range(4)))

    assert asyncio.run(run()) == [f"Question {number}" for number in range(4)]
    said = [message.content for message in memory.session("s1").messages()]
    assert all(
        answer == question.replace("Question", "Answer") for question, answer in zip(said[::2], said[1::2], strict=True)
    )


def test_a_turn_that_another_one_keeps_waiting_is_busy(memory: kept.Kept) -> None:
    session = memory.session("s1")

    async def run() -> None:
        async with session.aturn("First"):
            with pytest.raises(kept.Busy, match=r"in another turn(?s:.*)use `aturn`"):
                async with session.aturn("Second", wait_s=0.05):
                    pass

    asyncio.run(run())
    assert [message.content for message in session.messages()] == ["First"]


@pytest.mark.parametrize("after_s", [0.0, 0.001, 0.003, 0.01, 0.05])
def test_a_turn_that_is_cancelled_while_it_begins_or_waits_or_lasts_is_over(memory: kept.Kept, after_s: float) -> None:
    session = memory.session("s1")

    async def last() -> None:
        async with session.aturn("One that lasts"):
            await asyncio.sleep(10)

    async def run() -> None:
        async with asyncio.timeout(5):
            tasks = [asyncio.ensure_future(last()) for _ in range(3)]
            await asyncio.sleep(after_s)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            async with session.aturn("The next one", wait_s=2):
                pass

    asyncio.run(run())
    assert session.messages()[-1].content == "The next one"
    with session.turn("Nobody holds it", wait_s=0):
        pass


def test_a_turn_that_is_cancelled_while_it_writes_lets_no_other_write_before_it(
    memory: kept.Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = memory.session("s1")
    append, begun, go_on = type(session).append, threading.Event(), threading.Event()

    def slowly(self: Any, role: str, content: str, **more: Any) -> Any:
        if content == "Cancelled":
            begun.set()
            go_on.wait(10)
        return append(self, role, content, **more)

    monkeypatch.setattr(type(session), "append", slowly)

    async def cancelled() -> None:
        async with session.aturn("Cancelled"):
            await asyncio.sleep(10)

    async def run() -> None:
        task = asyncio.ensure_future(cancelled())
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(kept.Busy):
            async with session.aturn("Too early", wait_s=0.05):
                pass
        go_on.set()
        await asyncio.gather(task, return_exceptions=True)
        async with session.aturn("The next one", wait_s=2):
            pass

    asyncio.run(run())
    assert [message.content for message in session.messages()] == ["Cancelled", "The next one"]


def test_a_lease_that_a_thread_takes_after_its_caller_was_cancelled_is_given_back() -> None:
    deeds: list[str] = []
    begun, go_on = threading.Event(), threading.Event()

    @contextmanager
    def lease() -> Iterator[bool]:
        begun.set()
        go_on.wait(10)
        deeds.append("taken")
        try:
            yield True
        finally:
            deeds.append("given back")

    async def hold() -> None:
        async with leased(lease, 1):
            deeds.append("held")

    async def run() -> None:
        task = asyncio.ensure_future(hold())
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()

    asyncio.run(run())  # waits for the worker threads at its end
    assert deeds == ["taken", "given back"]


# Threads, one object or many


def test_many_threads_share_one_object(memory: kept.Kept) -> None:
    def work(number: int) -> None:
        for n in range(5):
            memory.remember(f"Thread {number} stored fact number {n * 31} about its own topic-{number}-{n}")
            memory.recall(f"topic-{number}")

    in_threads(work, 8)
    assert len(memory.list(limit=100)) == 40


def test_threads_that_write_first_at_the_same_time_open_one_store(home: Path) -> None:
    with kept.open(user="ada") as memory:
        in_threads(lambda number: memory.remember(f"Number {number} came first, says thread {number * 17}"), 8)
        assert len(memory.list()) == 8


def in_threads(work: Callable[[int], object], many: int) -> None:
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# The pool


def test_a_pool_keeps_memories_open_and_closes_the_one_returned_longest_ago(home: Path) -> None:
    with kept.Pool(max_open=2) as pool:
        with pool.user("ada") as ada:
            ada.remember(WORDS)
        with pool.user("grace") as grace:
            grace.remember(WORDS)
        with pool.user("ada") as again:
            assert again is ada
        with pool.user("alan"):
            assert repr(pool) == "<kept.Pool: 2 of at most 2 open>"
        with pytest.raises(kept.StorageError, match="is closed"):
            grace.list()
        with pool.user("ada") as again:
            assert again is ada
            assert len(again.list()) == 1
    with pytest.raises(kept.StorageError, match="is closed"):
        ada.list()


def test_a_memory_in_use_is_never_closed_and_a_pool_without_room_says_so(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "WAIT_S", 0.05)
    with kept.Pool(max_open=1) as pool, pool.user("ada") as ada:
        ada.remember(WORDS)
        with pytest.raises(kept.Busy, match="All 1 memories of this"), pool.user("grace"):
            pass
        assert len(ada.list()) == 1
        with pool.user("ada") as same:
            assert same is ada


def test_a_user_who_waits_gets_the_room_that_is_returned(home: Path) -> None:
    with kept.Pool(max_open=2) as pool:

        def work(number: int) -> None:
            for n in range(6):
                with pool.user(f"user {(number + n) % 7}") as memory:
                    memory.remember(f"Thread {number} in round {n}, says witness {number * 6 + n}")

        in_threads(work, 6)
        counted = 0
        for number in range(7):
            with pool.user(f"user {number}") as memory:
                counted += len(memory.list(limit=100))
    assert counted == 36


def test_a_memory_that_is_still_lent_is_closed_when_it_is_returned(home: Path) -> None:
    pool = kept.Pool()
    with pool.user("ada") as memory:
        memory.remember(WORDS)
        pool.close()
        assert len(memory.list()) == 1
    with pytest.raises(kept.StorageError, match="is closed"):
        memory.list()
    with pytest.raises(kept.StorageError, match="Pool is closed"), pool.user("ada"):
        pass


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"setings": {}}, TypeError, "unexpected keyword argument 'setings'"),
        ({"user": "ada"}, TypeError, "unexpected keyword argument 'user'"),
        ({"settings": {"presett": "manual"}}, kept.SettingsError, "no setting 'presett'"),
        ({"settings": "manual"}, kept.InvalidInput, "settings must be"),
        ({"location": "memory.db"}, kept.InvalidInput, "user cannot be combined with project or a file"),
        ({"project": "web-app"}, kept.InvalidInput, "user cannot be combined with project or a file"),
        ({"max_open": "100"}, kept.InvalidInput, "max_open must be a whole number"),
        ({"max_open": 0}, kept.InvalidInput, "max_open must be a whole number"),
    ],
)
def test_a_pool_that_could_open_no_memory_says_so_when_it_is_made(
    home: Path, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        kept.Pool(**given)


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_pool_refuses_what_is_no_name(home: Path, name: Any) -> None:
    with kept.Pool() as pool, pytest.raises(kept.InvalidInput, match="user must"), pool.user(name):
        pass


def test_a_task_that_is_cancelled_while_its_memory_opens_leaves_nothing_lent(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, opened = threading.Event(), kept.open

    def slow(*args: Any, **kwargs: Any) -> kept.Kept:
        begun.set()
        time.sleep(0.1)
        return opened(*args, **kwargs)

    monkeypatch.setattr(pools, "open_memory", slow)
    pool = kept.Pool(max_open=1)

    async def use(name: str) -> int:
        async with pool.auser(name) as memory:
            return len(await memory.alist())

    async def run() -> int:
        task = asyncio.ensure_future(use("ada"))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await use("grace")

    assert asyncio.run(run()) == 0
    pool.close()


def test_tasks_that_wait_for_room_leave_the_threads_to_those_that_have_a_memory(home: Path) -> None:
    """With a thread for each waiting task, those that hold a memory would never get one to give it back."""

    async def use(pool: kept.Pool, number: int) -> None:
        async with pool.auser(f"user {number}") as memory:
            await memory.aremember(f"The locker of this user has the number {number}")

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
        with kept.Pool(max_open=3) as pool:
            await asyncio.wait_for(asyncio.gather(*(use(pool, number) for number in range(14))), 60)
            assert repr(pool) == "<kept.Pool: 3 of at most 3 open>"
            async with pool.auser("user 7") as memory:
                assert len(await memory.alist()) == 1

    asyncio.run(run())


def test_a_task_without_room_is_told_so_and_one_that_is_cancelled_passes_its_turn_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(pool: kept.Pool, name: str) -> int:
        async with pool.auser(name) as memory:
            return len(await memory.alist())

    async def run() -> None:
        with kept.Pool(max_open=1) as pool:
            async with pool.auser("ada"):
                first, second = (asyncio.ensure_future(use(pool, name)) for name in ("grace", "alan"))
                await asyncio.sleep(0)
            first.cancel()  # its turn has come in this moment
            assert await asyncio.wait_for(second, 20) == 0
            assert first.cancelled() or await asyncio.gather(first, return_exceptions=True)
            monkeypatch.setattr(pools, "WAIT_S", 0.02)
            async with pool.auser("ada"):
                with pytest.raises(kept.Busy, match="All 1 memories of this"):
                    await use(pool, "grace")

    asyncio.run(run())


def test_the_twin_of_a_verb_shows_the_signature_of_the_verb(home: Path) -> None:
    with kept.open(user="ada") as memory:
        assert inspect.signature(memory.aremember) == inspect.signature(memory.remember)
        assert memory.aremember.__name__ == "aremember"
        assert inspect.iscoroutinefunction(memory.aremember)


USERS, HANDLES = (1_000, 1_024) if IS_LONG else (300, 324)
PROGRAM = """
import os, sys
import kept
with kept.Pool(max_open=int(sys.argv[1])) as pool:
    for number in range(int(sys.argv[2])):
        with pool.user(f"user-{number}@example.com") as memory:
            memory.remember(f"The locker of this user has the number {number * 37}")
    for number in range(int(sys.argv[2])):
        with pool.user(f"user-{number}@example.com") as memory:
            [hit] = memory.recall("locker number").hits
            assert hit.memory.content.endswith(f" {number * 37}"), hit
            assert len(memory.list()) == 1
    print(len(os.listdir('/proc/self/fd')))
"""


@posix_only
def test_a_thousand_users_fit_into_one_process_with_1024_file_handles_and_300_kb_each(home: Path) -> None:
    """The short version has 300 users and as many handles fewer."""
    limited = ["sh", "-c", f'ulimit -n {HANDLES}; exec "$@"', "sh"]
    done = subprocess.run(
        [*limited, sys.executable, "-c", PROGRAM, str(HANDLES // 5), str(USERS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) < HANDLES * 0.9
    sizes = [sum(file.stat().st_size for file in folder.iterdir()) for folder in home.glob("users/*/*")]
    assert len(sizes) == USERS
    assert max(sizes) <= 300_000


@posix_only
def test_too_many_open_memories_say_so_and_name_the_pool(home: Path) -> None:
    program = (
        "import kept\nmemories = []\ntry:\n    for n in range(200):\n        memories.append(kept.open(user=str(n)))\n"
        "        memories[-1].remember('The canary sings')\n"
        "except kept.StorageError as error:\n    print(error.message, error.hint)"
    )
    done = subprocess.run(
        ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "oo many open files" in done.stdout, done.stderr
    assert "kept.Pool" in done.stdout


@posix_only
def test_a_forked_process_uses_the_pool_of_its_parent(home: Path) -> None:
    pool = kept.Pool()
    with pool.user("ada") as memory:
        memory.remember(WORDS)
    child = os.fork()
    if not child:
        with pool.user("ada") as memory:
            memory.remember("The child stored this line as well")
        pool.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    with pool.user("ada") as memory:
        assert len(memory.list()) == 2
    pool.close()
