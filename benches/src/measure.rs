//! Medians over rounds: one figure from many rounds.
//!
//! Guarantees: one slow round (another build on the machine, a compaction) does not move the figure.

use serde_json::{Value, json};

use crate::load::LoadOutcome;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadFigures {
    pub per_second: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub cpu_us: f64,
}

impl LoadFigures {
    pub fn of(outcome: &LoadOutcome, cpu_us: f64) -> LoadFigures {
        LoadFigures {
            per_second: outcome.per_second(),
            p50_us: outcome.percentile_us(50),
            p99_us: outcome.percentile_us(99),
            cpu_us: cpu_us / outcome.latencies.len().max(1) as f64,
        }
    }

    pub fn median(rounds: &[LoadFigures]) -> LoadFigures {
        let of = |metric: fn(&LoadFigures) -> f64| median(rounds.iter().map(metric).collect());
        LoadFigures {
            per_second: of(|f| f.per_second),
            p50_us: of(|f| f.p50_us),
            p99_us: of(|f| f.p99_us),
            cpu_us: of(|f| f.cpu_us),
        }
    }

    pub fn json(&self) -> Value {
        json!({"per_second": self.per_second, "p50_us": self.p50_us, "p99_us": self.p99_us, "cpu_us_per_op": self.cpu_us})
    }
}

/// The median over the rounds of Pleiad's value divided by the reference's value in the same round. A disturbance slows
/// both down in that round, so this is steadier than a ratio of medians.
pub fn share(pleiad: &[LoadFigures], reference: &[LoadFigures], metric: fn(&LoadFigures) -> f64) -> f64 {
    median(pleiad.iter().zip(reference).map(|(measured, baseline)| metric(measured) / metric(baseline)).collect())
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_ignores_outliers() {
        assert_eq!(median(vec![900.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![]), 0.0);
    }

    #[test]
    fn ratios_are_computed_round_by_round() {
        let round = |per_second| LoadFigures { per_second, ..LoadFigures::default() };
        let (ours, theirs) = ([round(5.0), round(50.0), round(6.0)], [round(10.0), round(100.0), round(100.0)]);
        assert_eq!(share(&ours, &theirs, |f| f.per_second), 0.5);
    }
}
