"""Agents at work: rounds of one live problem, or of many users at once, in somebody's service.

`online` is what users hold; `reading` checks what they give; `rounds` keeps what was decided and what waits for its
reward; `memory` and `contexts` hold what was learned of each user; `propensity` and `scaling` are what their names say;
`saved` is the file to go on from.
"""
