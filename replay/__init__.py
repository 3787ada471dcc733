"""The judge: an independent simulated consumer group, the rival policies, the league table.

`plant` shares no physics and no code with `cost_model`, so that the cost model is not judged by itself.
"""
