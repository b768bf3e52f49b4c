"""One file per finding, with everything known of it (:class:`traceviz.report.findings.record.FindingRecord`)."""
