//! Golden pages: data, requests and expected answers in one file, run against the real binary in several worlds.
//!
//! Every page under tests/golden runs in every world that fits its settings (store × partitions), with a database of
//! its own, and must get the answers that it states. tests/golden/README.md describes the format of a page.
//!
//! ```text
//! cargo test --release -p pleiad --test golden                          all pages
//! GOLDEN=items/rename cargo test --release -p pleiad --test golden      those whose path contains this
//! UPDATE_GOLDEN=1 cargo test --release -p pleiad --test golden          write the answers; then read the diff
//! ```

#[path = "golden/page.rs"]
mod page; // parses a page into steps
#[path = "golden/line.rs"]
mod line; // splits one line of a page into words
#[path = "golden/world.rs"]
mod world; // the server that a page runs against
#[path = "golden/bearer.rs"]
mod bearer; // bearer tokens, signed as an issuer signs them
#[path = "golden/client.rs"]
mod client; // HTTP requests, signed as a client signs them
#[path = "golden/runner.rs"]
mod runner; // runs the steps of a page and saves answers for later steps
#[path = "golden/query.rs"]
mod query; // runs a query with several page sizes
#[path = "golden/render.rs"]
mod render; // writes an answer in the notation of a page
#[path = "golden/masks.rs"]
mod masks; // replaces values that differ from run to run by stable names

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use page::Page;
use world::{Settings, World};

type Result<T, E = String> = std::result::Result<T, E>;

#[test]
fn pages_hold_in_every_world() {
    let (pages, update) = (chosen_pages().unwrap(), std::env::var_os("UPDATE_GOLDEN").is_some());
    assert!(!pages.is_empty(), "no page under {} matches GOLDEN", directory().display());
    if update {
        update_answers(&pages).unwrap();
    }
    let pages = if update { chosen_pages().unwrap() } else { pages };
    let failures = run_everywhere(&pages);
    record_run(&pages).unwrap();
    assert!(failures.is_empty(), "{}\n{} failures", failures.join("\n"), failures.len());
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn chosen_pages() -> Result<Vec<Page>> {
    let wanted = std::env::var("GOLDEN").unwrap_or_default();
    let mut paths = Vec::new();
    find(&directory(), &mut paths)?;
    paths.sort();
    let chosen = paths.into_iter().filter(|path| path.to_string_lossy().contains(&wanted));
    chosen.map(|path| Page::load(&path)).collect()
}

fn find(directory: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(directory).map_err(|e| format!("cannot list {}: {e}", directory.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        match path.extension() {
            _ if path.is_dir() => find(&path, pages)?,
            Some(extension) if extension == "page" => pages.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Runs the worlds in parallel, and the pages of a world one after the other: pages share the account, so a page would
/// see the databases of another one that runs at the same time.
fn run_everywhere(pages: &[Page]) -> Vec<String> {
    let mut by_settings: BTreeMap<&Settings, Vec<&Page>> = BTreeMap::new();
    for page in pages {
        by_settings.entry(&page.settings).or_default().push(page);
    }
    let worlds = by_settings
        .iter()
        .flat_map(|(settings, pages)| World::all(settings).into_iter().map(move |world| (world, pages)));
    thread::scope(|scope| {
        let running: Vec<_> = worlds.map(|(world, pages)| scope.spawn(move || run_in(&world, pages))).collect();
        running
            .into_iter()
            .flat_map(|world| world.join().unwrap_or_else(|_| vec!["a world panicked".to_owned()]))
            .collect()
    })
}

fn run_in(world: &World, pages: &[&Page]) -> Vec<String> {
    let mut server = match world.start() {
        Ok(server) => server,
        Err(why) => return vec![format!("{world}: {why}")],
    };
    pages.iter().flat_map(|page| compare(page, world, runner::run(page, &mut server))).collect()
}

fn compare(page: &Page, world: &World, outcome: Result<Vec<Vec<String>>>) -> Vec<String> {
    match outcome {
        Ok(answers) => page.differences(&answers).iter().map(|difference| failure(page, world, difference)).collect(),
        Err(why) => vec![failure(page, world, &why)],
    }
}

fn failure(page: &Page, world: &World, what: &str) -> String {
    let name = page.name();
    format!("\n{name} in the world {world}\n{what}\nagain: GOLDEN={name} cargo test --release -p pleiad --test golden")
}

/// Takes the answers from one world that fits the page; all other worlds must give the same.
fn update_answers(pages: &[Page]) -> Result<()> {
    let mut servers = BTreeMap::new();
    for page in pages {
        let world = World::stated(&page.settings).ok_or("no world")?;
        let server = match servers.entry(&page.settings) {
            std::collections::btree_map::Entry::Occupied(server) => server.into_mut(),
            std::collections::btree_map::Entry::Vacant(slot) => slot.insert(world.start()?),
        };
        let answers = runner::run(page, server).map_err(|why| failure(page, &world, &why))?;
        page.write(&answers)?;
    }
    Ok(())
}

/// Records which pages were run. `xtask` compares the list with the tree: a page that never runs proves nothing.
fn record_run(pages: &[Page]) -> Result<()> {
    let Some(list) = std::env::var_os("PLEIAD_GOLDEN_RAN") else { return Ok(()) };
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&list);
    let mut file = file.map_err(|e| format!("cannot write {}: {e}", list.display()))?;
    let names: String = pages.iter().map(|page| format!("tests/golden/{}\n", page.name())).collect();
    file.write_all(names.as_bytes()).map_err(|e| e.to_string())
}
