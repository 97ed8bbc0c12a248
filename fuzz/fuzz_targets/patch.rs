//! A random patch on a random item: if it applies, the result can be written and parsed again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_model::json;
use pleiad_model::patch::Patch;

fuzz_target!(|texts: (&[u8], &[u8])| {
    let (Ok(body), Ok(mut item)) = (json::parse(texts.0), json::parse(texts.1)) else { return };
    if let Ok(patch) = Patch::parse(&body)
        && patch.apply(&mut item).is_ok()
    {
        json::parse(json::to_string(&item).as_bytes()).expect("a patched item can be parsed");
    }
});
