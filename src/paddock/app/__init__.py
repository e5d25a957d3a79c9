"""The composition root: settings, wiring, the programs that run for long. The one place that constructs things."""
