//! Container definitions: an accepted definition, written as JSON, is accepted again and unchanged.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pleiad_model::json;
use pleiad_model::policy::ContainerDefinition;

fuzz_target!(|text: &[u8]| {
    let Ok(body) = json::parse(text) else { return };
    if let Ok(definition) = ContainerDefinition::create(&body) {
        let again = ContainerDefinition::create(&definition.to_object().into()).expect("a written definition is valid");
        assert_eq!(again, definition);
    }
});
