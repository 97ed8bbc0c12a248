//! Minimal Cosmos DB client: signed requests over one keep-alive HTTP/1.1 connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pleiad_model::env::{Env, SystemEnv};
use pleiad_model::{Value, json};
use ring::hmac;

pub struct Client {
    stream: BufReader<TcpStream>,
    key: hmac::Key,
}

pub struct Request<'a> {
    pub verb: &'a str,
    /// Without the leading slash: `dbs/d/colls/c/docs`.
    pub path: String,
    pub headers: Vec<(&'a str, String)>,
    pub body: String,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub continuation: Option<String>,
    pub body: Value,
}

impl<'a> Request<'a> {
    pub fn new(verb: &'a str, path: impl Into<String>) -> Self {
        Request { verb, path: path.into(), headers: Vec::new(), body: String::new() }
    }

    pub fn header(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn body(mut self, body: &Value) -> Self {
        self.body = json::to_string(body);
        self
    }
}

impl Client {
    pub fn connect(port: u16, key: &str) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, &BASE64_STANDARD.decode(key).unwrap());
        Ok(Client { stream: BufReader::new(stream), key })
    }

    pub fn send(&mut self, request: &Request<'_>) -> io::Result<Response> {
        let head = self.head(request);
        self.stream.get_mut().write_all(&[head.as_bytes(), request.body.as_bytes()].concat())?;
        self.receive()
    }

    fn head(&self, request: &Request<'_>) -> String {
        let date = http_date(SystemEnv.now_ms() / 1000);
        let signature = self.signature(request.verb, &request.path, &date);
        let mut head = format!("{} /{} HTTP/1.1\r\nhost: localhost\r\n", request.verb, request.path);
        head += &format!("x-ms-date: {date}\r\nx-ms-version: 2020-07-15\r\nauthorization: {signature}\r\n");
        head += &format!("content-type: application/json\r\ncontent-length: {}\r\n", request.body.len());
        request.headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        head + "\r\n"
    }

    /// A request on a feed signs the parent's link and the type of the children, a request on a resource signs its own
    /// link and type, a request to the management API signs its path.
    fn signature(&self, verb: &str, path: &str, date: &str) -> String {
        let parts: Vec<&str> = path.split('/').collect();
        if parts[0] == "_pleiad" {
            return self.signed(verb, "pleiad", path, date);
        }
        let is_feed = parts.len() % 2 == 1;
        let kind = parts[if is_feed { parts.len() - 1 } else { parts.len() - 2 }];
        let link = if is_feed { parts[..parts.len() - 1].join("/") } else { path.to_owned() };
        self.signed(verb, kind, &link, date)
    }

    fn signed(&self, verb: &str, kind: &str, link: &str, date: &str) -> String {
        let text = format!("{}\n{kind}\n{link}\n{}\n\n", verb.to_lowercase(), date.to_lowercase());
        let signature = BASE64_STANDARD.encode(hmac::sign(&self.key, text.as_bytes()));
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        format!("type%3Dmaster%26ver%3D1.0%26sig%3D{signature}")
    }

    fn receive(&mut self) -> io::Result<Response> {
        let status = self.line()?.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let (mut length, mut continuation) = (0, None);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().map_err(io::Error::other)?,
                "x-ms-continuation" => continuation = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let body = if length == 0 { Value::Null } else { json::parse(&body).map_err(io::Error::other)? };
        Ok(Response { status, continuation, body })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end().to_owned()),
        }
    }
}

/// `Thu, 01 Jan 1970 00:00:00 GMT`
fn http_date(seconds: u64) -> String {
    let at = time::OffsetDateTime::from_unix_timestamp(seconds.cast_signed()).unwrap();
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    let (day, year, (hour, minute, second)) = (at.day(), at.year(), at.to_hms());
    format!("{}, {day:02} {} {year} {hour:02}:{minute:02}:{second:02} GMT", &weekday[..3], &month[..3])
}
