//! Responses of the management API as tables.
//!
//! ```text
//! ID  RANGE         ITEMS     SIZE  RU/S  USE  STATUS
//! 1   -, 1FFF…        512  1.2 MiB  5000  40%  online
//! 2   1FFF…, FF       498  1.1 MiB  5000   3%  splitting (job 7, 45%)
//! ```

use pleiad_model::{Value, json};

/// A column: its title, and whether it is numeric (right-aligned).
type TableColumn = (&'static str, bool);

pub fn partitions(answer: &Value) -> String {
    const COLUMNS: [TableColumn; 9] = [
        ("ID", false),
        ("RANGE", false),
        ("PARENTS", false),
        ("ITEMS", true),
        ("SIZE", true),
        ("LSN", true),
        ("RU/S", true),
        ("USE", true),
        ("STATUS", false),
    ];
    let row = |one: &Value| {
        vec![
            text(one, "id"),
            format!("{}, {}", short_key(&text(one, "minInclusive")), short_key(&text(one, "maxExclusive"))),
            id_list(one, "parents"),
            text(one, "items"),
            bytes(one, "bytes"),
            text(one, "lsn"),
            text(one, "throughput"),
            percent(one, "normalizedUse"),
            status(one),
        ]
    };
    render(&COLUMNS, rows(answer, "partitions").iter().map(row).collect(), "no partitions")
}

/// An effective partition key, truncated: the beginning is enough to tell ranges apart.
fn short_key(key: &str) -> String {
    match key {
        "" => "-".to_owned(),
        _ if key.len() > 8 => format!("{}…", key.chars().take(6).collect::<String>()),
        _ => key.to_owned(),
    }
}

fn status(partition: &Value) -> String {
    let status = text(partition, "status");
    match (partition.get("job"), partition.get("reason")) {
        (Some(_), _) => format!("{status} (job {}, {}%)", text(partition, "job"), text(partition, "percent")),
        (_, Some(_)) => format!("{status}: {}", text(partition, "reason")),
        _ => status,
    }
}

pub fn throughput(answer: &Value) -> String {
    let (kind, minimum) = (text(answer, "kind"), text(answer, "minimumThroughput"));
    let reserved = match kind.as_str() {
        "autoscale" => format!("autoscale, up to {} RU/s", text(answer, "autoscaleMaxThroughput")),
        "manual" => format!("{} RU/s", text(answer, "throughput")),
        _ => return "created; it shares the throughput of its database\n".to_owned(),
    };
    let pending = match answer.get("isPending").and_then(Value::as_bool) {
        Some(true) => "; partitions are being split for it",
        _ => "",
    };
    format!("{reserved} (at least {minimum}){pending}\n")
}

pub fn largest_keys(answer: &Value) -> String {
    const COLUMNS: [TableColumn; 5] =
        [("KEY", false), ("PARTITION", true), ("ITEMS", true), ("SIZE", true), ("OF LIMIT", true)];
    let row = |one: &Value| {
        let partition = text(one, "partitionKeyRangeId");
        vec![text(one, "partitionKey"), partition, text(one, "items"), bytes(one, "bytes"), percent(one, "limitUse")]
    };
    render(&COLUMNS, rows(answer, "keys").iter().map(row).collect(), "no items")
}

pub fn busiest_keys(answer: &Value) -> String {
    const COLUMNS: [TableColumn; 3] = [("KEY", false), ("PARTITION", true), ("RU", true)];
    let row =
        |one: &Value| vec![text(one, "partitionKey"), text(one, "partitionKeyRangeId"), text(one, "requestUnits")];
    render(&COLUMNS, rows(answer, "keys").iter().map(row).collect(), "no requests in the last minute")
}

pub fn throttles(answer: &Value) -> String {
    const COLUMNS: [TableColumn; 7] = [
        ("TIME", false),
        ("CONTAINER", false),
        ("PARTITION", true),
        ("THROTTLED", true),
        ("RU/S", true),
        ("USED", true),
        ("BUSIEST KEY", false),
    ];
    let row = |one: &Value| {
        vec![
            time(one),
            format!("{}/{}", text(one, "database"), text(one, "container")),
            text(one, "partitionKeyRangeId"),
            text(one, "refused"),
            text(one, "throughput"),
            text(one, "used"),
            text(one, "busiestKey"),
        ]
    };
    render(&COLUMNS, rows(answer, "throttles").iter().map(row).collect(), "nobody was refused")
}

pub fn snapshots(answer: &Value) -> String {
    const COLUMNS: [TableColumn; 3] = [("NAME", false), ("TAKEN", false), ("SIZE", true)];
    let row = |one: &Value| vec![text(one, "name"), snapshot_time(one), bytes(one, "bytes")];
    render(&COLUMNS, rows(answer, "snapshots").iter().map(row).collect(), "no snapshots")
}

pub fn snapshot_taken(answer: &Value) -> String {
    format!("snapshot {} is taken ({})\n", text(answer, "name"), bytes(answer, "bytes"))
}

pub fn snapshot_restored(answer: &Value) -> String {
    format!(
        "the account is what it was on {}: snapshot {}, restored in {} ms\n",
        snapshot_time(answer),
        text(answer, "name"),
        text(answer, "tookMs")
    )
}

/// The time of a snapshot in UTC, as the protocol writes dates.
fn snapshot_time(of: &Value) -> String {
    let ms = of.get("takenMs").and_then(Value::as_i64).and_then(|ms| u64::try_from(ms).ok()).unwrap_or_default();
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms))
}

/// The time of day, in UTC.
fn time(entry: &Value) -> String {
    let s = entry.get("time").and_then(Value::as_i64).unwrap_or_default().rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

pub fn jobs(answer: &Value) -> String {
    match rows(answer, "jobs") {
        [] => "no jobs\n".to_owned(),
        all => all.iter().map(|one| job(one) + "\n").collect(),
    }
}

/// `7 split shop/orders 0 → 1 2  copy 45%`, `8 copy shop → test  copy 45%`
pub fn job(one: &Value) -> String {
    let what = format!("{} {} {}", text(one, "id"), text(one, "kind"), text(one, "database"));
    let what = match one.get("to") {
        Some(_) => format!("{what} → {}", text(one, "to")),
        None => format!("{what}/{} {} → {}", text(one, "container"), id_list(one, "parents"), id_list(one, "children")),
    };
    let flag = |name, shown| if one.get(name).and_then(Value::as_bool) == Some(true) { shown } else { "" };
    match text(one, "status").as_str() {
        "running" => {
            let (step, percent) = (text(one, "step"), text(one, "percent"));
            format!("{what}  {step} {percent}%{}{}", flag("paused", " (paused)"), flag("held", " (held)"))
        }
        "failed" => format!("{what}  failed: {}", text(one, "error")),
        status => format!("{what}  {status}"),
    }
}

pub fn rows<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer.get(name).and_then(Value::as_array).unwrap_or_default()
}

pub fn text(of: &Value, name: &str) -> String {
    match of.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => json::to_string(other),
    }
}

fn id_list(of: &Value, name: &str) -> String {
    let ids = rows(of, name).iter().filter_map(Value::as_str);
    ids.collect::<Vec<_>>().join(" ")
}

fn percent(of: &Value, name: &str) -> String {
    let fraction = of.get(name).and_then(Value::as_number).map_or(0.0, |number| number.as_f64());
    format!("{:.0}%", fraction * 100.0)
}

/// `1.2 MiB`
fn bytes(of: &Value, name: &str) -> String {
    let mut size = of.get(name).and_then(Value::as_number).map_or(0.0, |number| number.as_f64());
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while size >= 1024.0 {
        let Some(next) = units.next() else { break };
        (size, unit) = (size / 1024.0, next);
    }
    if unit == "B" { format!("{size} {unit}") } else { format!("{size:.1} {unit}") }
}

fn render(columns: &[TableColumn], rows: Vec<Vec<String>>, none: &str) -> String {
    if rows.is_empty() {
        return format!("{none}\n");
    }
    let titles: Vec<String> = columns.iter().map(|(title, _)| (*title).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(titles).chain(rows).collect();
    let width =
        |at: usize| all.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    all.iter().map(|row| line(columns, &widths, row)).collect()
}

fn line(columns: &[TableColumn], widths: &[usize], row: &[String]) -> String {
    let padded = columns.iter().zip(widths).zip(row).map(|(((_, is_numeric), width), cell)| {
        let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
        if *is_numeric { format!("{gap}{cell}") } else { format!("{cell}{gap}") }
    });
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
}
