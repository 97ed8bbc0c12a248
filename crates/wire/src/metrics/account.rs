//! Per-partition metrics of the engine, under the names of Cosmos DB's metrics in snake case.
//!
//! Invariant: the number of series is bounded by the number of physical partitions. Of the logical partition keys only
//! the few busiest and largest have series, and only if keys may be shown.

use std::fmt::Write;

use pleiad_engine::ProvisionedThroughput;
use pleiad_engine::metrics::{AccountMetrics, ContainerMetrics, PartitionMetrics};

/// One metric and how its samples are produced.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: fn(&ContainerMetrics, &mut Lines<'_>),
}

/// Prefix of the metrics whose labels contain partition keys.
const KEY_FAMILIES: &str = "pleiad_partition_key_";

const FAMILIES: [Family; 12] = [
    Family {
        name: "pleiad_normalized_ru_consumption",
        kind: "gauge",
        help: "The busiest second of this minute and the last, as a part of the partition's share",
        samples: |container, out| each(container, out, |partition| partition.normalized),
    },
    Family {
        name: "pleiad_total_request_units",
        kind: "counter",
        help: "Request units since the start",
        samples: |container, out| each(container, out, |partition| partition.total_ru),
    },
    Family {
        name: "pleiad_forgiven_request_units",
        kind: "counter",
        help: "Request units beyond the five seconds of the share that one request may leave owing",
        samples: |container, out| each(container, out, |partition| partition.forgiven_ru),
    },
    Family {
        name: "pleiad_total_requests",
        kind: "counter",
        help: "Requests at the partition since the start",
        samples: |container, out| {
            for partition in &container.partitions {
                let throttled = partition.requests_throttled as f64;
                out.sample(container, Some(partition), &[("status", "served")], partition.requests as f64);
                out.sample(container, Some(partition), &[("status", "throttled")], throttled);
            }
        },
    },
    Family {
        name: "pleiad_physical_partition_throughput_info",
        kind: "gauge",
        help: "The partition's share of the throughput, RU/s",
        samples: |container, out| each(container, out, |partition| partition.share_ru),
    },
    Family {
        name: "pleiad_physical_partition_size_info",
        kind: "gauge",
        help: "Bytes of items in the partition",
        samples: |container, out| each(container, out, |partition| partition.item_bytes as f64),
    },
    Family {
        name: "pleiad_partition_key_ru_consumption",
        kind: "gauge",
        help: "Request units of the busiest keys in this minute and the last",
        samples: |container, out| {
            for partition in &container.partitions {
                for busy in &partition.busiest_keys {
                    out.sample(container, Some(partition), &[("partition_key", &busy.key)], busy.ru);
                }
            }
        },
    },
    Family {
        name: "pleiad_partition_key_statistics",
        kind: "gauge",
        help: "Bytes of the largest keys",
        samples: |container, out| {
            for partition in &container.partitions {
                for large in &partition.largest_keys {
                    out.sample(container, Some(partition), &[("partition_key", &large.key)], large.bytes as f64);
                }
            }
        },
    },
    Family {
        name: "pleiad_provisioned_throughput",
        kind: "gauge",
        help: "What the container or its database reserves, RU/s",
        samples: |container, out| {
            if let Some(throughput) = container.throughput {
                out.sample(container, None, &[("allocation_type", kind(throughput))], throughput.ceiling_ru().into());
            }
        },
    },
    Family {
        name: "pleiad_autoscaled_ru",
        kind: "gauge",
        help: "What an autoscale container scaled to in the last hour, RU/s",
        samples: |container, out| {
            if let Some(ru) = container.autoscaled_ru {
                out.sample(container, None, &[], ru);
            }
        },
    },
    Family {
        name: "pleiad_global_secondary_index_propagation_latency",
        kind: "gauge",
        help: "For how long an index has not seen all changes of its source, seconds",
        samples: |container, out| {
            if let Some(index) = &container.global_index {
                out.sample(container, None, &[("status", index.status)], index.lag_ms as f64 / 1000.0);
            }
        },
    },
    Family {
        name: "pleiad_global_secondary_index_build",
        kind: "gauge",
        help: "How much of an index is built, percent",
        samples: |container, out| {
            if let Some(index) = &container.global_index {
                out.sample(container, None, &[], index.built_percent as f64);
            }
        },
    },
];

pub fn render(account: &AccountMetrics, shows_keys: bool, out: &mut String) {
    for family in FAMILIES.iter().filter(|family| shows_keys || !family.name.starts_with(KEY_FAMILIES)) {
        let _ = writeln!(out, "# HELP {} {}.\n# TYPE {0} {}", family.name, family.help, family.kind);
        let mut lines = Lines { name: family.name, out };
        account.containers.iter().for_each(|container| (family.samples)(container, &mut lines));
    }
    let _ = writeln!(out, "# HELP pleiad_alerts Alerts raised.\n# TYPE pleiad_alerts counter");
    let _ = writeln!(out, "pleiad_alerts_total {}", account.alerts);
}

fn kind(throughput: ProvisionedThroughput) -> &'static str {
    match throughput {
        ProvisionedThroughput::Manual(_) => "Manual",
        ProvisionedThroughput::Autoscale { .. } => "Autoscale",
    }
}

fn each(container: &ContainerMetrics, out: &mut Lines<'_>, figure: impl Fn(&PartitionMetrics) -> f64) {
    container.partitions.iter().for_each(|partition| out.sample(container, Some(partition), &[], figure(partition)));
}

struct Lines<'a> {
    name: &'static str,
    out: &'a mut String,
}

impl Lines<'_> {
    fn sample(
        &mut self,
        container: &ContainerMetrics,
        partition: Option<&PartitionMetrics>,
        more: &[(&str, &str)],
        figure: f64,
    ) {
        let range = partition.map(|partition| partition.range.to_string());
        let named = [("database", container.database.as_str()), ("container", container.container.as_str())];
        let range = range.as_deref().map(|range| ("partition_key_range_id", range));
        let labels = named.into_iter().chain(range).chain(more.iter().copied());
        let labels: Vec<String> = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(self.out, "{}{{{}}} {figure}", self.name, labels.join(","));
    }
}

/// Clients choose names and keys, so they may contain any character.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleiad_engine::metrics::KeyCharge;
    use pleiad_model::resource_id::ContainerRid;

    #[test]
    fn a_partition_has_its_series_and_a_key_is_escaped() {
        let partition = PartitionMetrics {
            range: 3,
            share_ru: 100.0,
            normalized: 0.25,
            last_second_ru: 1.0,
            total_ru: 25.5,
            forgiven_ru: 1.5,
            requests: 7,
            requests_throttled: 2,
            items: 1,
            item_bytes: 2048,
            busiest_keys: vec![KeyCharge { key: r#"["a"]"#.to_owned(), ru: 20.0 }],
            largest_keys: Vec::new(),
        };
        let container = ContainerMetrics {
            database: "shop".to_owned(),
            container: "orders".to_owned(),
            rid: ContainerRid { database: pleiad_model::resource_id::DatabaseRid(1), number: 1 },
            throughput: Some(ProvisionedThroughput::Manual(400)),
            autoscaled_ru: None,
            global_index: None,
            partitions: vec![partition],
        };
        let mut text = String::new();
        let account = AccountMetrics { containers: vec![container], alerts: 4 };
        render(&account, true, &mut text);
        let labels = r#"database="shop",container="orders",partition_key_range_id="3""#;
        for line in [
            format!("pleiad_normalized_ru_consumption{{{labels}}} 0.25"),
            format!("pleiad_total_requests{{{labels},status=\"throttled\"}} 2"),
            format!("pleiad_forgiven_request_units{{{labels}}} 1.5"),
            format!("pleiad_partition_key_ru_consumption{{{labels},partition_key=\"[\\\"a\\\"]\"}} 20"),
            "pleiad_provisioned_throughput{database=\"shop\",container=\"orders\",allocation_type=\"Manual\"} 400"
                .to_owned(),
            "pleiad_alerts_total 4".to_owned(),
            "# TYPE pleiad_total_requests counter".to_owned(),
            "# TYPE pleiad_total_request_units counter".to_owned(),
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
        let mut text = String::new();
        render(&account, false, &mut text);
        assert!(!text.contains("partition_key=") && text.contains("pleiad_alerts_total 4"), "{text}");
    }
}
