"""Promotion: what turns a found candidate into a policy that ships."""
