"""`kept serve`: the verbs of the library over HTTP, with the same words, for programs, teams and the page.

    keys      who is asking: the person who started the server, or the holder of a team's token
    visits    browsers that are signed in: codes, cookies, and the notices of the page
    heads     connections on which no request begins, and answers that are not read
    guard     what is refused before any verb runs: foreign hosts and origins, no key, too much, too slow
    problems  errors as problem documents, with the library's sentences
    shapes    values as JSON, and their schemas for the OpenAPI document
    routes_*  one function for each verb
    server    the application, and running it

Rule: no verb has logic of its own here. Each opens the project for the key that asks, and calls the facade.
"""
