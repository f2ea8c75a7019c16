"""The MCP server: `kept mcp`, the tools through which an agent recalls, stores and rates memories.

    protocol    the texts an agent reads: when and how to use its memory
    tools       the tools, derived from the verbs, and the wording of their answers
    calls       a call and a tool
    graph       the nine tools of the reference server's knowledge graph, for `kept mcp --graph`
    mended      requests with half a character, which the SDK would leave without an answer
    graph_arguments checking what a model sent to a tool of the graph
    surroundings    which project and which session a call belongs to
    consent     asking a person through the client
    server      the official SDK around all of this

Rule: every call opens the memory and closes it again. So the server holds nothing that could be lost or out of date,
and any number of clients may run one each. A result is text only: where a result has structured content as well, some
clients show the model nothing else. The graph is the exception, since its clients expect both, and both are the same.
"""
