use super::*;

const STATE: SyncedState = SyncedState { position: SyncedPosition { log: 12, bytes: 40_000 }, unsynced_boot: 0 };

#[test]
fn a_line_is_as_drawn() {
    let line = encode(3, STATE);
    assert_eq!(line, "0000000000000003 000000000000000c 0000000000009c40 0000000000000000 5ea29c58\n");
    assert_eq!(line.len(), LINE_BYTES);
    assert_eq!(decode(line.as_bytes()), Some((3, STATE)));
}

#[test]
fn a_line_with_a_changed_byte_does_not_count() {
    let line = encode(3, STATE);
    for at in 0..line.len() {
        let mut bytes = line.clone().into_bytes();
        bytes[at] ^= 1;
        assert_eq!(decode(&bytes), None, "byte {at}");
        assert_eq!(decode(&line.as_bytes()[..at]), None);
    }
}

fn position(bytes: u64) -> SyncedPosition {
    SyncedPosition { log: 12, bytes }
}

#[test]
fn the_newest_whole_line_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("SYNCED");
    assert_eq!(read(&path).unwrap(), None);
    let writer = SyncedFileWriter::start(&path, SyncedPosition::default()).unwrap();
    assert_eq!(read(&path).unwrap(), Some(SyncedState::default()));
    (1..=5).for_each(|bytes| writer.note(position(bytes)));
    drop(writer);
    assert_eq!(read(&path).unwrap().unwrap().position, position(5));
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.len(), 2 * LINE_BYTES);
    let newest = text.lines().max().unwrap();
    fs::write(&path, text.replace(newest, &newest.replace('5', "7"))).unwrap();
    assert!(read(&path).unwrap().is_some(), "the line before it is whole");
    fs::write(&path, "nonsense").unwrap();
    assert!(read(&path).is_err());
}

#[test]
fn unsynced_writes_are_noted_before_they_are_acknowledged_and_a_new_boot_has_lost_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("SYNCED");
    let writer = SyncedFileWriter::start(&path, position(0)).unwrap();
    writer.note_unsynced();
    let noted = read(&path).unwrap().unwrap();
    assert!(noted.unsynced_boot != 0 && !noted.has_lost_unsynced(), "the same boot");
    assert!(SyncedState { unsynced_boot: noted.unsynced_boot + 1, ..noted }.has_lost_unsynced());
    writer.note(position(7));
    writer.note_unsynced();
    drop(writer);
    assert_ne!(read(&path).unwrap().unwrap().unsynced_boot, 0, "the last write was not synced");
    let writer = SyncedFileWriter::start(&path, position(0)).unwrap();
    writer.note_unsynced();
    writer.note(position(9));
    drop(writer);
    assert_eq!(read(&path).unwrap().unwrap(), SyncedState { position: position(9), unsynced_boot: 0 });
}

/// As a power failure leaves it.
pub fn write_earlier_boot(path: &Path) {
    let state = read(path).unwrap().unwrap();
    fs::write(path, encode(1_000, SyncedState { unsynced_boot: 1, ..state })).unwrap();
}
