"""Steps of a trial with everything an engine needs to run them."""
