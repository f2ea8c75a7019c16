"""The page of `kept serve`: what the memory knows, why an agent saw it, what changed, and what a person should decide.

    pages   one function for each view: it asks the facade, and hands the template what to show
    draw    scores and budgets as geometry: numbers in, percentages out
    words   times, kinds and reasons as a person reads them

Rule: the server draws. Every view can be read without JavaScript, changes are forms, and everything that a memory says
is escaped by the template.
"""
