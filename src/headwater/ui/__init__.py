"""What a browser and Prometheus see of the jobs of this process, by HTTP on this machine alone.

server    who may ask, and for what
metrics   the text form of Prometheus
graph     a plan as boxes and arrows
static/   the page: HTML, CSS and JavaScript as they are, without a build step and without anything from elsewhere
"""
