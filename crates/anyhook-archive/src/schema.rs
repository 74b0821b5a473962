//! The columns of an archive's files, and files of events.

use std::sync::Arc;

use anyhook_store::{EventRow, EventSummary, RunRow};
use bytes::Bytes;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::error::Result;

/// Incremented when a column is removed or changes its meaning, not when one is added.
pub const SCHEMA_VERSION: u32 = 1;

/// Documented in docs/fleet.md.
pub const SCHEMA: &str = "message anyhook_event {
  required binary store (STRING);
  required int64 seq;
  required binary id (STRING);
  required int64 time (TIMESTAMP(MICROS,true));
  required binary kind (STRING);
  required binary agent (STRING);
  required binary event (STRING);
  required binary type (STRING);
  optional binary native_event (STRING);
  optional binary session_id (STRING);
  optional binary machine (STRING);
  optional binary user_id (STRING);
  optional binary project_id (STRING);
  optional binary workflow_id (STRING);
  optional binary cwd (STRING);
  optional binary tool (STRING);
  optional binary detail (STRING);
  optional binary decision (STRING);
  optional binary reason (STRING);
  required double duration_ms;
  required group runs (LIST) {
    repeated group list {
      required group element {
        required binary hook (STRING);
        required binary content (STRING);
        required binary manifest (STRING);
        required binary outcome (STRING);
        required double duration_ms;
      }
    }
  }
  required binary record (STRING);
}";

type RequiredText = fn(&EventSummary) -> &str;
type OptionalText = fn(&EventSummary) -> Option<&str>;
type RunText = fn(&RunRow) -> &str;

const REQUIRED_TEXTS: [RequiredText; 4] = [
    |event| &event.kind,
    |event| &event.agent,
    |event| &event.event,
    |event| &event.unified,
];

const OPTIONAL_TEXTS: [OptionalText; 11] = [
    |event| event.native_event.as_deref(),
    |event| event.session_id.as_deref(),
    |event| event.machine.as_deref(),
    |event| event.user_id.as_deref(),
    |event| event.project_id.as_deref(),
    |event| event.workflow_id.as_deref(),
    |event| event.cwd.as_deref(),
    |event| event.tool.as_deref(),
    |event| event.detail.as_deref(),
    |event| event.decision.as_deref(),
    |event| event.reason.as_deref(),
];

const RUN_TEXTS: [RunText; 4] = [
    |run| &run.hook,
    |run| &run.content,
    |run| &run.manifest,
    |run| &run.outcome,
];

fn properties() -> WriterPropertiesPtr {
    let version = KeyValue::new(
        "anyhook.schema_version".to_owned(),
        SCHEMA_VERSION.to_string(),
    );
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("anyhook ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![version]));
    Arc::new(properties.build())
}

fn new_file() -> Result<SerializedFileWriter<Vec<u8>>> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    Ok(SerializedFileWriter::new(Vec::new(), schema, properties())?)
}

/// A file of these events, in their order.
pub(crate) fn file_of(store_id: &str, rows: &[&EventRow]) -> Result<Vec<u8>> {
    let mut file = new_file()?;
    let writer = file.next_row_group()?;
    write_row_group(RowGroup { rows, writer }, store_id)?;
    Ok(file.into_inner()?)
}

fn write_row_group(mut group: RowGroup<'_, '_>, store_id: &str) -> Result<()> {
    let rows = group.rows;
    let store_ids = vec![bytes_of(store_id); rows.len()];
    group.column::<ByteArrayType>(&store_ids, None)?;
    group.integers(|row| row.summary.seq)?;
    group.texts(|row| &row.summary.id)?;
    group.integers(|row| row.summary.time_us)?;
    for read in REQUIRED_TEXTS {
        group.texts(|row| read(&row.summary))?;
    }
    for read in OPTIONAL_TEXTS {
        group.optional_texts(|row| read(&row.summary))?;
    }
    let durations: Vec<f64> = rows.iter().map(|row| row.summary.duration_ms).collect();
    group.column::<DoubleType>(&durations, None)?;
    let levels = group.list_levels();
    for read in RUN_TEXTS {
        let texts: Vec<ByteArray> = group.runs().map(|run| bytes_of(read(run))).collect();
        group.column::<ByteArrayType>(&texts, Some((&levels.0, Some(&levels.1))))?;
    }
    let durations: Vec<f64> = group.runs().map(|run| run.duration_ms).collect();
    group.column::<DoubleType>(&durations, Some((&levels.0, Some(&levels.1))))?;
    group.texts(|row| &row.body)?;
    group.writer.close()?;
    Ok(())
}

fn bytes_of(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

/// Levels of definition and, of a list, of repetition.
type Levels<'a> = Option<(&'a [i16], Option<&'a [i16]>)>;

struct RowGroup<'a, 'file> {
    rows: &'a [&'a EventRow],
    writer: SerializedRowGroupWriter<'file, Vec<u8>>,
}

impl RowGroup<'_, '_> {
    fn column<T: parquet::data_type::DataType>(
        &mut self,
        values: &[T::T],
        levels: Levels<'_>,
    ) -> Result<()> {
        if let Some(mut column) = self.writer.next_column()? {
            let (definitions, repetitions) = match levels {
                Some((definitions, repetitions)) => (Some(definitions), repetitions),
                None => (None, None),
            };
            column
                .typed::<T>()
                .write_batch(values, definitions, repetitions)?;
            column.close()?;
        }
        Ok(())
    }

    fn integers(&mut self, read: impl Fn(&EventRow) -> i64) -> Result<()> {
        let values: Vec<i64> = self.rows.iter().map(|row| read(row)).collect();
        self.column::<Int64Type>(&values, None)
    }

    fn texts(&mut self, read: impl Fn(&EventRow) -> &str) -> Result<()> {
        let values: Vec<ByteArray> = self.rows.iter().map(|row| bytes_of(read(row))).collect();
        self.column::<ByteArrayType>(&values, None)
    }

    fn optional_texts(&mut self, read: impl Fn(&EventRow) -> Option<&str>) -> Result<()> {
        let mut values = Vec::new();
        let mut levels = Vec::with_capacity(self.rows.len());
        for row in self.rows {
            let value = read(row);
            levels.push(i16::from(value.is_some()));
            values.extend(value.map(bytes_of));
        }
        self.column::<ByteArrayType>(&values, Some((&levels, None)))
    }

    fn runs(&self) -> impl Iterator<Item = &RunRow> {
        self.rows.iter().flat_map(|row| &row.runs)
    }

    /// Of the columns of a list: an event without hooks has one undefined value.
    fn list_levels(&self) -> (Vec<i16>, Vec<i16>) {
        let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
        for row in self.rows {
            for at in 0..row.runs.len().max(1) {
                definitions.push(i16::from(!row.runs.is_empty()));
                repetitions.push(i16::from(at > 0));
            }
        }
        (definitions, repetitions)
    }
}

/// One file with the row groups of several, which are copied as they are.
pub(crate) fn merged(files: Vec<Bytes>) -> Result<Vec<u8>> {
    let mut output = new_file()?;
    for bytes in files {
        let file = SerializedFileReader::new(bytes.clone())?;
        for group in file.metadata().row_groups() {
            let mut writer = output.next_row_group()?;
            for column in group.columns() {
                let close = ColumnCloseResult {
                    bytes_written: u64::try_from(column.compressed_size()).unwrap_or_default(),
                    rows_written: u64::try_from(group.num_rows()).unwrap_or_default(),
                    metadata: column.clone(),
                    bloom_filter: None,
                    column_index: None,
                    offset_index: None,
                };
                writer.append_column(&bytes, close)?;
            }
            writer.close()?;
        }
    }
    Ok(output.into_inner()?)
}
