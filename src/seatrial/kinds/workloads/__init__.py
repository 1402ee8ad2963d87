"""Pods and everything that creates them, with the kubelet and the scheduler."""
