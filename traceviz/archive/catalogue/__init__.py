"""Catalogue of an archive: a row for every trace and rank."""
