"""A program that was written for mem0, with one line changed.

python examples/from_mem0.py
"""

# from mem0 import Memory
from kept.adapters.mem0 import Memory


def main() -> None:
    memory = Memory(location=":memory:")
    memory.add([{"role": "user", "content": "I am allergic to nuts. I live in Lisbon."}], user_id="anna")
    memory.add("My dog is called Bruno.", user_id="ben", metadata={"topic": "pets"})
    for one in memory.search("Am I allergic to anything?", filters={"user_id": "anna"})["results"]:
        print(one["memory"])
    [known] = memory.get_all(filters={"user_id": "ben"})["results"]
    memory.update(known["id"], data="My dog is called Bruno, and he is old.")
    print([event["event"] for event in memory.history(known["id"])])
    memory.delete(known["id"])
    print(len(memory.get_all(filters={"user_id": "ben"})["results"]))


if __name__ == "__main__":
    main()
