//! Alert webhook: one POST of JSON per alert to a URL that the operator configures, over HTTP or HTTPS.
//!
//! Guarantees: only the task that posts waits for the response, and only until the client's timeout.

use http::Request;
use http::header::CONTENT_TYPE;
use pleiad_engine::{Alert, AlertKind};
use pleiad_model::{Error, Object, Result, json};

use crate::http_client::Remote;

pub struct Webhook {
    remote: Remote,
}

impl Webhook {
    pub fn new(url: &str) -> Result<Self> {
        let wrong = || Error::invalid("the alert webhook must be a URL such as https://example.org/alerts");
        Ok(Webhook { remote: Remote::new(url)?.ok_or_else(wrong)? })
    }

    pub async fn post(&self, alert: &Alert) -> Result<()> {
        let request = Request::post("/").header(CONTENT_TYPE, "application/json");
        let (status, _) = self.remote.send_request(request, body(alert)).await?;
        if status.is_success() { Ok(()) } else { Err(Error::unavailable(format!("it answered with {status}"))) }
    }
}

/// `{"kind": "HotPartition", "time": 1700000000, "database": …, "message": …}`
fn body(alert: &Alert) -> Vec<u8> {
    let mut out = Vec::new();
    json::write(&alert_json(alert).into(), &mut out);
    out
}

/// An alert as JSON.
pub(crate) fn alert_json(alert: &Alert) -> Object {
    let object = Object::new()
        .with("kind", alert.kind.name())
        .with("time", alert.ts_s)
        .with("database", alert.database.as_str())
        .with("container", alert.container.as_str())
        .with("partitionKeyRangeId", alert.range.to_string());
    let object = match &alert.kind {
        AlertKind::HotPartition { share_ru, throttled, busiest_key } => {
            let object = object.with("shareRuPerSecond", *share_ru).with("throttledRequests", *throttled);
            busiest_key.iter().fold(object, |object, key| object.with("busiestPartitionKey", key.as_str()))
        }
        AlertKind::KeyNearlyFull { key, bytes, bytes_max } => {
            object.with("partitionKey", key.as_str()).with("sizeBytes", *bytes).with("maxBytes", *bytes_max)
        }
    };
    object.with("message", alert.to_string())
}

#[cfg(test)]
mod tests;
