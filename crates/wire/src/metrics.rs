//! Metrics of the server, in the Prometheus text format.
//!
//! A request updates its counters once; the text is rendered when `/metrics` is read.

mod account; // the engine's metrics

use std::time::Duration;

use pleiad_engine::metrics::AccountMetrics;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// The last line of the text format.
const END: &str = "# EOF\n";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    /// The name of the operation in its API.
    operation: &'static str,
    status: u16,
}

pub struct Metrics {
    /// Whether partition keys are included: any client can read `/metrics` without an account key.
    shows_keys: bool,
    registry: Registry,
    requests: Family<Labels, Counter>,
    charge: Counter<f64, std::sync::atomic::AtomicU64>,
    duration: Histogram,
}

impl Metrics {
    pub fn new(shows_keys: bool) -> Self {
        let mut registry = Registry::with_prefix("pleiad");
        let requests = Family::<Labels, Counter>::default();
        let charge = Counter::<f64, _>::default();
        // 50 µs to 1.6 s, doubling.
        let duration = Histogram::new(exponential_buckets(0.00005, 2.0, 16));
        registry.register("requests", "Requests answered", requests.clone());
        registry.register("request_units", "Request units charged", charge.clone());
        registry.register(
            "request_duration_seconds",
            "Time from the request's headers to its answer",
            duration.clone(),
        );
        Metrics { shows_keys, registry, requests, charge, duration }
    }

    pub fn request(&self, operation: &'static str, status: u16, charge_ru: f64, took: Duration) {
        self.requests.get_or_create(&Labels { operation, status }).inc();
        self.charge.inc_by(charge_ru);
        self.duration.observe(took.as_secs_f64());
    }

    pub fn render(&self, account: &AccountMetrics) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut out, &self.registry);
        out.truncate(out.len() - out.strip_suffix(END).map_or(0, |_| END.len()));
        account::render(account, self.shows_keys, &mut out);
        out + END
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_operation_and_status() {
        let metrics = Metrics::new(false);
        metrics.request("Read", 200, 1.5, Duration::from_millis(1));
        metrics.request("Read", 404, 1.0, Duration::from_millis(1));
        let text = metrics.render(&AccountMetrics::default());
        assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
        assert!(text.contains("pleiad_requests_total{operation=\"Read\",status=\"200\"} 1"), "{text}");
        assert!(text.contains("pleiad_request_units_total 2.5"), "{text}");
    }
}
