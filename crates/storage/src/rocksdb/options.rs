//! RocksDB settings, and the reasons for them.
//!
//! Guarantees: an idle store costs no CPU and next to no memory, a start reads a handful of small files, and no
//! acknowledged write depends on a default that is not chosen here.

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, BottommostLevelCompaction, Cache, CompactOptions, DBCompressionType,
    DBRecoveryMode, DataBlockIndexType, LogLevel, Options, ReadOptions, ReadTier, WriteOptions,
};

use crate::store::Durability;

/// The settings that a deployment may choose.
#[derive(Clone, Debug)]
pub struct RocksOptions {
    /// Uncompressed blocks of files, including index and filter blocks. Filled on use.
    pub block_cache_bytes: usize,
    /// Rows of items, ids and shard states that were read recently. Filled on use.
    pub row_cache_bytes: usize,
    /// Size of one write buffer; there are up to three while flushing lags behind. Filled on use.
    pub write_buffer_bytes: usize,
    /// Threads that flush and compact. They sleep while there is no work.
    pub background_jobs: i32,
    /// Open files. A file is up to 64 MB; the rest of the process needs file descriptors too.
    pub open_files_max: i32,
    /// Open a store whose write-ahead log is damaged, without the writes behind the damage.
    pub accept_data_loss: bool,
}

impl Default for RocksOptions {
    fn default() -> Self {
        RocksOptions {
            block_cache_bytes: 32 << 20,
            row_cache_bytes: 8 << 20,
            write_buffer_bytes: 16 << 20,
            background_jobs: 2,
            open_files_max: 512,
            accept_data_loss: false,
        }
    }
}

/// Shared by the stores of one directory: files that a store has in common with a checkpoint are cached once.
pub fn block_cache(chosen: &RocksOptions) -> Cache {
    Cache::new_hyper_clock_cache(chosen.block_cache_bytes, 0)
}

pub fn db_options(chosen: &RocksOptions, block_cache: &Cache) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table_options(block_cache));
    options.set_max_background_jobs(chosen.background_jobs);
    options.set_max_open_files(chosen.open_files_max);
    set_recovery_options(&mut options);
    set_compaction_options(&mut options, chosen);
    disable_periodic_work(&mut options);
    options
}

/// After a crash the log ends in bytes that were being written: a truncated record, or pages of one that reached the
/// disk out of order. No client got an acknowledgement for those writes. "Point in time" replays up to the first
/// incomplete record and opens; everything acknowledged as synced comes before it, since no write is acknowledged
/// after a failed sync. The alternatives are worse: "absolute consistency" does not open after any crash during a
/// write, "tolerate corrupted tail" accepts a truncated record but not a torn page, "skip" would replay what came
/// after a hole. Damage that is no torn tail is found before RocksDB sees the log (`log_check`), and by comparing with
/// the manifest, which knows the earlier log files and their lengths.
fn set_recovery_options(options: &mut Options) {
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    options.set_track_and_verify_wals_in_manifest(true);
    options.set_manual_wal_flush(false); // a write that returned has reached the operating system
    options.set_skip_stats_update_on_db_open(true); // it would read a block of every file
    options.set_max_manifest_file_size(4 << 20); // replayed at every start
}

/// Leveled compaction, so that reads search few files. LZ4 for what is rewritten soon, Zstandard for the bottom
/// level, which holds nine tenths of the bytes.
fn set_compaction_options(options: &mut Options, chosen: &RocksOptions) {
    options.set_write_buffer_size(chosen.write_buffer_bytes);
    options.set_max_write_buffer_number(3);
    // A lookup of a key that is not in the write buffer should not search it: most lookups are for older rows, or
    // check whether a new id is free.
    options.set_memtable_prefix_bloom_ratio(0.02);
    options.set_memtable_whole_key_filtering(true);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_target_file_size_base(64 << 20);
    options.set_max_bytes_for_level_base(256 << 20);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options.set_bytes_per_sync(1 << 20); // flushes reach the disk evenly and do not delay the log's syncs
    // Feed rows are a queue: written at one end, deleted at the other. Without this setting a reader at the
    // old end steps over every tombstone until a compaction happens to remove them.
    options.add_compact_on_deletion_collector_factory(4096, 1024, 0.5);
}

/// No periodic work: no statistics on a timer. The log has warnings only, in two small files.
fn disable_periodic_work(options: &mut Options) {
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_log_level(LogLevel::Warn);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(1 << 20);
    // Obsolete files are deleted in the background, not by the request that releases them last.
    options.set_avoid_unnecessary_blocking_io(true);
}

/// Filters and indexes are partitioned into blocks and cached like data, so that the cache's size bounds their
/// memory: a large store with a small cache holds the parts it uses. An insert first checks whether the id is free,
/// so most filter lookups are for absent keys; therefore the bottom level has filters too.
fn table_options(block_cache: &Cache) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(block_cache);
    table.set_block_size(8 * 1024);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash); // a get needs no binary search
    table.set_data_block_hash_ratio(0.75);
    table.set_bloom_filter(10.0, false);
    table.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    table.set_partition_filters(true);
    table.set_metadata_block_size(4096);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_top_level_index_and_filter(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table
}

/// For reads that never access the disk.
pub fn read_cache_only() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_read_tier(ReadTier::BlockCache);
    options
}

pub fn write(durability: Durability) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(durability == Durability::Synced);
    options
}

/// A write that fails, with nothing done, instead of waiting for a flush.
pub fn write_no_stall() -> WriteOptions {
    let mut options = write(Durability::Written);
    options.set_no_slowdown(true);
    options
}

/// A compaction that frees disk space: down to the last level, in parallel with the automatic ones.
pub fn compact() -> CompactOptions {
    let mut options = CompactOptions::default();
    options.set_exclusive_manual_compaction(false);
    options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
    options
}

/// For a store that has lost a part of its log: the list of logs in the manifest is cleared, not compared.
pub fn without_log_verification(options: &Options) -> Options {
    let mut options = options.clone();
    options.set_track_and_verify_wals_in_manifest(false);
    options
}
