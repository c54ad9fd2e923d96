"""Runs a cluster of fake nodes on this machine: etcd, kube-apiserver, kube-scheduler."""
