"""One file per finding, with all its data (:class:`traceviz.report.findings.record.FindingRecord`)."""
