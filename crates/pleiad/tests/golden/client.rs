//! HTTP/1.1 client that signs requests as SDKs do. It shares no protocol code with the server, so that an error in that
//! code cannot cancel itself out.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pleiad_model::env::{Env, SystemEnv};
use ring::hmac;

use crate::{Result, bearer};

/// The well-known key of the Cosmos DB emulators; public, in the documentation of every SDK.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
pub const READ_ONLY_KEY: &str = "cmVhZGVycyBtYXkgbG9vayBidXQgbm90IHRvdWNoIGFueXRoaW5nIGhlcmUsIHRoYW5rIHlvdSBhbGwuLi4=";
const UNKNOWN_KEY: &str = "bm9ib2R5J3Mga2V5";

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

pub struct Client {
    pub port: u16,
    /// Reused between requests, as SDKs do.
    connection: Option<BufReader<TcpStream>>,
}

pub struct Request<'a> {
    pub method: &'a str,
    /// Percent-encoded, with its leading slash.
    pub path: &'a str,
    pub headers: Vec<(String, String)>,
    pub body: &'a [u8],
}

#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub fn new(port: u16) -> Client {
        Client { port, connection: None }
    }

    pub fn send(&mut self, request: &Request<'_>) -> Result<Response> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let broken = |e: std::io::Error| format!("{} {}: {e}", request.method, request.path);
        connection.get_mut().write_all(&self.bytes(request)).map_err(broken)?;
        let response = read_response(&mut connection, request.method == "HEAD").map_err(broken)?;
        if response.header("connection") != Some("close") {
            self.connection = Some(connection);
        }
        Ok(response)
    }

    fn connect(&self) -> Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|e| format!("cannot connect: {e}"))?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_read_timeout(Some(RESPONSE_TIMEOUT)))
            .map_err(|e| e.to_string())?;
        Ok(BufReader::new(stream))
    }

    fn bytes(&self, request: &Request<'_>) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: localhost:{}\r\n", request.method, request.path, self.port);
        for (name, value) in &request.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n", request.body.len());
        [head.as_bytes(), request.body].concat()
    }
}

fn read_response(from: &mut BufReader<TcpStream>, head_only: bool) -> std::io::Result<Response> {
    let invalid = || std::io::Error::from(std::io::ErrorKind::InvalidData);
    let status = read_line(from)?.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(invalid)?;
    let mut response = Response { status, ..Response::default() };
    loop {
        let line = read_line(from)?;
        let Some((name, value)) = line.split_once(':') else { break };
        response.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let bytes = response.header("content-length").map_or(Ok(0), str::parse).map_err(|_| invalid())?;
    if !head_only && !matches!(status, 204 | 304) {
        response.body = vec![0; bytes];
        from.read_exact(&mut response.body)?;
    }
    Ok(response)
}

fn read_line(from: &mut BufReader<TcpStream>) -> std::io::Result<String> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}

// ---- signing ------------------------------------------------------------------------------------------------

/// The headers that sign a request: `signed wrong-key`, `signed read-only`, `signed 16m-ago`, `signed 16m-ahead`,
/// `signed token:reader`.
pub fn authorization(signed: Option<&str>, method: &str, path: &str) -> Result<Vec<(String, String)>> {
    let (key, minutes) = match signed {
        Some("not") => return Ok(Vec::new()),
        Some("wrong-key") => (UNKNOWN_KEY, 0),
        Some("read-only") => (READ_ONLY_KEY, 0),
        Some(token) if token.contains("token") => {
            return Ok(vec![("authorization".to_owned(), bearer::authorization(token)?)]);
        }
        Some(offset) => (EMULATOR_KEY, minutes(offset)?),
        None => (EMULATOR_KEY, 0),
    };
    let date = date(SystemEnv.now_ms() / 1000, minutes);
    let (kind, link) = signed_resource(path);
    let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
    let key = STANDARD.decode(key).map_err(|e| e.to_string())?;
    let signature = STANDARD.encode(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes()));
    let token = format!("type%3Dmaster%26ver%3D1.0%26sig%3D{}", escape(&signature));
    Ok(vec![("x-ms-date".to_owned(), date), ("authorization".to_owned(), token)])
}

fn minutes(offset: &str) -> Result<i64> {
    let (number, sign) = match (offset.strip_suffix("m-ago"), offset.strip_suffix("m-ahead")) {
        (Some(number), _) => (number, -1),
        (_, Some(number)) => (number, 1),
        _ => return Err(format!("unknown signature `{offset}`")),
    };
    number.parse::<i64>().map(|number| sign * number).map_err(|e| e.to_string())
}

/// The type and link that a client signs: those of the resource, or of the parent when the path ends in a feed.
fn signed_resource(path: &str) -> (String, String) {
    if let Some((_, target)) = path.split_once("$resolveFor=") {
        let resource_path = target.split('&').next().unwrap_or_default();
        let (_, link) = signed_resource(resource_path);
        return ("docs".to_owned(), link);
    }
    let path = path.split('?').next().unwrap_or_default();
    let segments: Vec<String> = path.split('/').filter(|segment| !segment.is_empty()).map(decode).collect();
    if segments.first().is_some_and(|first| first == "_pleiad") {
        return ("pleiad".to_owned(), segments.join("/"));
    }
    let feed = segments.len() % 2 == 1;
    let kind = segments.get(segments.len().wrapping_sub(if feed { 1 } else { 2 })).cloned().unwrap_or_default();
    let named = if feed { &segments[..segments.len() - 1] } else { &segments[..] };
    // An operation is signed as a request on its container.
    if kind == "operations" {
        return ("colls".to_owned(), named[..4.min(named.len())].join("/"));
    }
    match named.last() {
        Some(last) if kind == "offers" || named.get(1).is_some_and(|database| is_rid(database)) => {
            (kind, last.to_lowercase())
        }
        _ => (kind, named.join("/")),
    }
}

/// Clients distinguish resource ids from names by the database's segment alone.
fn is_rid(database: &str) -> bool {
    database.len() == 8 && STANDARD.decode(database.replace('-', "/")).is_ok_and(|bytes| bytes.len() == 4)
}

fn decode(segment: &str) -> String {
    let mut out = Vec::new();
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        let hex = |byte: Option<u8>| char::from(byte.unwrap_or_default()).to_digit(16).unwrap_or_default() as u8;
        out.push(if byte == b'%' { hex(bytes.next()) << 4 | hex(bytes.next()) } else { byte });
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn escape(signature: &str) -> String {
    signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// RFC 1123, as in `Thu, 27 Apr 2017 00:51:12 GMT`.
pub fn date(now_s: u64, offset_minutes: i64) -> String {
    let seconds = i64::try_from(now_s).unwrap_or_default() + offset_minutes * 60;
    let at = time::OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    let (hour, minute, second) = at.time().as_hms();
    format!("{}, {:02} {} {} {hour:02}:{minute:02}:{second:02} GMT", &weekday[..3], at.day(), &month[..3], at.year())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_sign_their_parent_and_rids_are_lower_case() {
        let signed = |path: &str| signed_resource(path);
        let pair = |kind: &str, link: &str| (kind.to_owned(), link.to_owned());
        assert_eq!(signed("/"), pair("", ""));
        assert_eq!(signed("/dbs"), pair("dbs", ""));
        assert_eq!(signed("/dbs/My%20Db/colls/c/docs"), pair("docs", "dbs/My Db/colls/c"));
        assert_eq!(signed("/dbs/db/colls/c/docs/ID"), pair("docs", "dbs/db/colls/c/docs/ID"));
        assert_eq!(signed("/dbs/ZZZZAA==/colls/ZZZZAIzzzzo=/"), pair("colls", "zzzzaizzzzo="));
        assert_eq!(signed("/_pleiad/v1/containers/My%20Db/c?a=b"), pair("pleiad", "_pleiad/v1/containers/My Db/c"));
        assert_eq!(signed("/offers/OOoo/"), pair("offers", "oooo"));
        assert_eq!(signed("/dbs/db/colls/c/operations/partitionkeydelete"), pair("colls", "dbs/db/colls/c"));
    }

    #[test]
    fn dates_are_rfc_1123() {
        assert_eq!(date(1_493_254_272, 0), "Thu, 27 Apr 2017 00:51:12 GMT");
        assert_eq!(date(1_493_254_272, -16), "Thu, 27 Apr 2017 00:35:12 GMT");
    }
}
