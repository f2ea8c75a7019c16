"""A LangGraph agent whose store is Kept. Needs the extra `langgraph`.

python examples/langgraph_agent.py
"""

from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

from kept.adapters.langgraph import KeptStore


class State(TypedDict):
    """A question, and the answer to it."""

    question: str
    answer: str


def answer(state: State, *, store: BaseStore) -> State:
    """Answer with what the store knows of the user."""
    found = store.search(("users", "anna"), query=state["question"], limit=1)
    return {"question": state["question"], "answer": str(found[0].value["text"]) if found else "I do not know."}


def main() -> None:
    store = KeptStore(location=":memory:")
    store.put(("users", "anna"), "food", {"text": "Anna likes spicy ramen"})
    graph = StateGraph(State)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    agent = graph.compile(store=store)
    print(agent.invoke({"question": "Which ramen does she like?", "answer": ""})["answer"])


if __name__ == "__main__":
    main()
