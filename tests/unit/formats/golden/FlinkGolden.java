// Fills the golden files of this directory with what Flink itself writes and reads.
//
// A golden file is a list of cases: {"name", "type", "options", "encode": [row, …], "decode": [text or {"hex": …}, …]}.
// Flink's answers are written beside them: "encoded" (text, or hex for binary formats, null for no message, or
// {"error": …}) and "decoded" (rows, [] for none, or {"error": …}).
//
// Of changelog formats, a row in "encode" and "decoded" is [kind, row], and "metadata" lists keys that are read too.
//
//   java -cp '<the lib directory of Flink 2.2>/*:<flink-sql-avro>.jar' FlinkGolden.java *.json

import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.formats.avro.AvroFormatOptions.AvroEncoding;
import org.apache.flink.formats.avro.AvroRowDataDeserializationSchema;
import org.apache.flink.formats.avro.AvroRowDataSerializationSchema;
import org.apache.flink.formats.common.TimestampFormat;
import org.apache.flink.formats.csv.CsvRowDataDeserializationSchema;
import org.apache.flink.formats.csv.CsvRowDataSerializationSchema;
import org.apache.flink.formats.json.JsonFormatOptions.MapNullKeyMode;
import org.apache.flink.formats.json.JsonParserRowDataDeserializationSchema;
import org.apache.flink.formats.json.JsonRowDataSerializationSchema;
import org.apache.flink.formats.json.canal.CanalJsonDecodingFormat;
import org.apache.flink.formats.json.canal.CanalJsonSerializationSchema;
import org.apache.flink.formats.json.debezium.DebeziumJsonDecodingFormat;
import org.apache.flink.formats.json.debezium.DebeziumJsonSerializationSchema;
import org.apache.flink.formats.json.maxwell.MaxwellJsonDecodingFormat;
import org.apache.flink.formats.json.maxwell.MaxwellJsonSerializationSchema;
import org.apache.flink.formats.json.ogg.OggJsonDecodingFormat;
import org.apache.flink.formats.json.ogg.OggJsonSerializationSchema;
import org.apache.flink.formats.raw.RawFormatDeserializationSchema;
import org.apache.flink.formats.raw.RawFormatSerializationSchema;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.util.DefaultIndenter;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.MapData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.connector.source.ScanRuntimeProviderContext;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.*;
import org.apache.flink.table.types.logical.utils.LogicalTypeParser;
import org.apache.flink.table.types.utils.TypeConversions;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;

public class FlinkGolden {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of().withUpperCase();

    public static void main(String[] files) throws Exception {
        for (String file : files) {
            Path path = Path.of(file);
            String format = path.getFileName().toString().replace(".json", "");
            ArrayNode cases = (ArrayNode) JSON.readTree(Files.readString(path));
            for (JsonNode c : cases) run(format, (ObjectNode) c);
            DefaultPrettyPrinter printer = new DefaultPrettyPrinter();
            printer.indentArraysWith(new DefaultPrettyPrinter.FixedSpaceIndenter());
            Files.writeString(path, JSON.writer(printer).writeValueAsString(cases) + "\n");
        }
    }

    static void run(String format, ObjectNode c) throws Exception {
        LogicalType parsed = LogicalTypeParser.parse(c.get("type").asText(), FlinkGolden.class.getClassLoader());
        RowType type = (RowType) parsed.copy(false);
        Map<String, String> options = new HashMap<>();
        if (c.has("options")) c.get("options").fields().forEachRemaining(e -> options.put(e.getKey(), e.getValue().asText()));
        boolean binary = format.equals("avro") || format.equals("raw");
        if (c.has("encode")) {
            ArrayNode out = c.putArray("encoded");
            for (JsonNode row : c.get("encode")) {
                try {
                    SerializationSchema<RowData> schema = writer(format, type, options);
                    schema.open(null);
                    byte[] bytes = schema.serialize(changes(format) ? change(type, row) : (RowData) value(type, row));
                    if (bytes == null) out.addNull();
                    else out.add(binary ? HEX.formatHex(bytes) : new String(bytes, StandardCharsets.UTF_8));
                } catch (Throwable t) { out.addObject().put("error", reason(t)); }
            }
        }
        if (c.has("decode")) {
            ArrayNode out = c.putArray("decoded");
            for (JsonNode message : c.get("decode")) {
                byte[] bytes = message.isObject() ? HEX.parseHex(message.get("hex").asText())
                        : binary ? HEX.parseHex(message.asText()) : message.asText().getBytes(StandardCharsets.UTF_8);
                try {
                    DeserializationSchema<RowData> schema = changes(format)
                            ? decoding(format, options, keys(c)).createRuntimeDecoder(ScanRuntimeProviderContext.INSTANCE, TypeConversions.fromLogicalToDataType(type))
                            : reader(format, type, options);
                    schema.open(null);
                    List<RowData> rows = new ArrayList<>();
                    schema.deserialize(bytes, new Collector<RowData>() {
                        public void collect(RowData row) { rows.add(row); }
                        public void close() {}
                    });
                    ArrayNode answer = JSON.createArrayNode();
                    for (RowData row : rows) {
                        if (row == null) continue;
                        if (!changes(format)) answer.add(show(type, row));
                        else answer.addArray().add(row.getRowKind().shortString()).add(show(produced(format, type, c, options), row));
                    }
                    out.add(answer);
                } catch (Throwable t) { out.addObject().put("error", reason(t)); }
            }
        }
    }

    static boolean changes(String format) { return format.contains("-json"); }

    static List<String> keys(JsonNode c) {
        List<String> keys = new ArrayList<>();
        if (c.has("metadata")) c.get("metadata").forEach(k -> keys.add(k.asText()));
        return keys;
    }

    static RowData change(RowType type, JsonNode pair) {
        GenericRowData row = (GenericRowData) value(type, pair.get(1));
        for (RowKind kind : RowKind.values()) if (kind.shortString().equals(pair.get(0).asText())) row.setRowKind(kind);
        return row;
    }

    /** The type of a decoded row: the table's columns, and the metadata that was asked for. */
    static RowType produced(String format, RowType type, JsonNode c, Map<String, String> o) {
        List<RowType.RowField> fields = new ArrayList<>(type.getFields());
        Map<String, DataType> known = decoding(format, o, keys(c)).listReadableMetadata();
        for (String key : keys(c)) fields.add(new RowType.RowField(key, known.get(key).getLogicalType()));
        return new RowType(fields);
    }

    static DecodingFormat<DeserializationSchema<RowData>> decoding(String format, Map<String, String> o, List<String> keys) {
        boolean lenient = flag(o, "ignore-parse-errors", false);
        DecodingFormat<DeserializationSchema<RowData>> decoding =
                format.startsWith("debezium") ? new DebeziumJsonDecodingFormat(flag(o, "schema-include", false), lenient, timestamps(o))
                : format.startsWith("canal") ? new CanalJsonDecodingFormat(o.get("database.include"), o.get("table.include"), lenient, timestamps(o))
                : format.startsWith("maxwell") ? new MaxwellJsonDecodingFormat(lenient, timestamps(o))
                : new OggJsonDecodingFormat(lenient, timestamps(o));
        decoding.applyReadableMetadata(keys);
        return decoding;
    }

    static String reason(Throwable t) {
        while (t.getCause() != null) t = t.getCause();
        return String.valueOf(t.getMessage()).split("\n")[0];
    }

    static boolean flag(Map<String, String> o, String key, boolean otherwise) {
        return Boolean.parseBoolean(o.getOrDefault(key, String.valueOf(otherwise)));
    }

    static TimestampFormat timestamps(Map<String, String> o) {
        return o.getOrDefault("timestamp-format.standard", "SQL").equals("SQL") ? TimestampFormat.SQL : TimestampFormat.ISO_8601;
    }

    static SerializationSchema<RowData> writer(String format, RowType type, Map<String, String> o) {
        switch (format) {
            case "json":
                return new JsonRowDataSerializationSchema(type, timestamps(o),
                        MapNullKeyMode.valueOf(o.getOrDefault("map-null-key.mode", "FAIL")),
                        o.getOrDefault("map-null-key.literal", "null"),
                        flag(o, "encode.decimal-as-plain-number", false), flag(o, "encode.ignore-null-fields", false));
            case "csv": {
                CsvRowDataSerializationSchema.Builder b = new CsvRowDataSerializationSchema.Builder(type);
                b.setWriteBigDecimalInScientificNotation(flag(o, "write-bigdecimal-in-scientific-notation", true));
                if (o.containsKey("field-delimiter")) b.setFieldDelimiter(o.get("field-delimiter").charAt(0));
                if (flag(o, "disable-quote-character", false)) b.disableQuoteCharacter();
                if (o.containsKey("quote-character")) b.setQuoteCharacter(o.get("quote-character").charAt(0));
                if (o.containsKey("array-element-delimiter")) b.setArrayElementDelimiter(o.get("array-element-delimiter"));
                if (o.containsKey("escape-character")) b.setEscapeCharacter(o.get("escape-character").charAt(0));
                if (o.containsKey("null-literal")) b.setNullLiteral(o.get("null-literal"));
                return b.build();
            }
            case "debezium-json": case "canal-json": case "maxwell-json": case "ogg-json": {
                MapNullKeyMode nulls = MapNullKeyMode.valueOf(o.getOrDefault("map-null-key.mode", "FAIL"));
                String literal = o.getOrDefault("map-null-key.literal", "null");
                boolean plain = flag(o, "encode.decimal-as-plain-number", false), skip = flag(o, "encode.ignore-null-fields", false);
                return format.startsWith("debezium") ? new DebeziumJsonSerializationSchema(type, timestamps(o), nulls, literal, plain, skip)
                        : format.startsWith("canal") ? new CanalJsonSerializationSchema(type, timestamps(o), nulls, literal, plain, skip)
                        : format.startsWith("maxwell") ? new MaxwellJsonSerializationSchema(type, timestamps(o), nulls, literal, plain, skip)
                        : new OggJsonSerializationSchema(type, timestamps(o), nulls, literal, plain, skip);
            }
            case "avro":
                return new AvroRowDataSerializationSchema(type,
                        AvroEncoding.valueOf(o.getOrDefault("encoding", "binary").toUpperCase()),
                        flag(o, "timestamp_mapping.legacy", true));
            default:
                return new RawFormatSerializationSchema(type.getTypeAt(0), o.getOrDefault("charset", "UTF-8"),
                        o.getOrDefault("endianness", "big-endian").equals("big-endian"));
        }
    }

    static DeserializationSchema<RowData> reader(String format, RowType type, Map<String, String> o) {
        InternalTypeInfo<RowData> info = InternalTypeInfo.of(type);
        boolean lenient = flag(o, "ignore-parse-errors", false);
        switch (format) {
            case "json":
                return new JsonParserRowDataDeserializationSchema(type, info, flag(o, "fail-on-missing-field", false),
                        lenient, timestamps(o));
            case "csv": {
                CsvRowDataDeserializationSchema.Builder b = new CsvRowDataDeserializationSchema.Builder(type, info);
                b.setIgnoreParseErrors(lenient);
                if (o.containsKey("field-delimiter")) b.setFieldDelimiter(o.get("field-delimiter").charAt(0));
                if (flag(o, "disable-quote-character", false)) b.disableQuoteCharacter();
                if (o.containsKey("quote-character")) b.setQuoteCharacter(o.get("quote-character").charAt(0));
                if (o.containsKey("allow-comments")) b.setAllowComments(flag(o, "allow-comments", false));
                if (o.containsKey("array-element-delimiter")) b.setArrayElementDelimiter(o.get("array-element-delimiter"));
                if (o.containsKey("escape-character")) b.setEscapeCharacter(o.get("escape-character").charAt(0));
                if (o.containsKey("null-literal")) b.setNullLiteral(o.get("null-literal"));
                return b.build();
            }
            case "avro":
                return new AvroRowDataDeserializationSchema(type, info,
                        AvroEncoding.valueOf(o.getOrDefault("encoding", "binary").toUpperCase()),
                        flag(o, "timestamp_mapping.legacy", true));
            default:
                return new RawFormatDeserializationSchema(type.getTypeAt(0), info, o.getOrDefault("charset", "UTF-8"),
                        o.getOrDefault("endianness", "big-endian").equals("big-endian"));
        }
    }

    static LogicalType keyType(LogicalType t) { return t instanceof MapType ? ((MapType) t).getKeyType() : ((MultisetType) t).getElementType(); }
    static LogicalType valueType(LogicalType t) { return t instanceof MapType ? ((MapType) t).getValueType() : new IntType(); }

    static Object value(LogicalType t, JsonNode n) {
        if (n.isNull()) return null;
        switch (t.getTypeRoot()) {
            case BOOLEAN: return n.asBoolean();
            case TINYINT: return (byte) n.asInt();
            case SMALLINT: return (short) n.asInt();
            case INTEGER: case TIME_WITHOUT_TIME_ZONE: return n.asInt();
            case BIGINT: return n.asLong();
            case FLOAT: return Float.parseFloat(n.asText());
            case DOUBLE: return Double.parseDouble(n.asText());
            case DECIMAL: { DecimalType d = (DecimalType) t; return DecimalData.fromBigDecimal(new BigDecimal(n.asText()), d.getPrecision(), d.getScale()); }
            case CHAR: case VARCHAR: return StringData.fromString(n.asText());
            case BINARY: case VARBINARY: return HEX.parseHex(n.asText());
            case DATE: return (int) LocalDate.parse(n.asText()).toEpochDay();
            case TIMESTAMP_WITHOUT_TIME_ZONE: case TIMESTAMP_WITH_LOCAL_TIME_ZONE: return TimestampData.fromLocalDateTime(LocalDateTime.parse(n.asText()));
            case ARRAY: {
                Object[] a = new Object[n.size()];
                for (int i = 0; i < a.length; i++) a[i] = value(((ArrayType) t).getElementType(), n.get(i));
                return new GenericArrayData(a);
            }
            case MAP: case MULTISET: {
                Map<Object, Object> m = new java.util.LinkedHashMap<>();
                for (JsonNode e : n) m.put(value(keyType(t), e.get(0)), value(valueType(t), e.get(1)));
                return new GenericMapData(m);
            }
            case ROW: {
                GenericRowData r = new GenericRowData(n.size());
                for (int i = 0; i < n.size(); i++) r.setField(i, value(((RowType) t).getTypeAt(i), n.get(i)));
                return r;
            }
            default: throw new IllegalArgumentException("" + t);
        }
    }

    static JsonNode show(LogicalType t, Object v) {
        if (v == null) return JSON.nullNode();
        switch (t.getTypeRoot()) {
            case DECIMAL: case FLOAT: case DOUBLE: case CHAR: case VARCHAR: return JSON.valueToTree(v.toString());
            case BINARY: case VARBINARY: return JSON.valueToTree(HEX.formatHex((byte[]) v));
            case DATE: return JSON.valueToTree(LocalDate.ofEpochDay((Integer) v).toString());
            case TIMESTAMP_WITHOUT_TIME_ZONE: case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
                return JSON.valueToTree(((TimestampData) v).toLocalDateTime().toString());
            case ARRAY: {
                ArrayNode out = JSON.createArrayNode();
                LogicalType e = ((ArrayType) t).getElementType();
                ArrayData.ElementGetter get = ArrayData.createElementGetter(e);
                for (int i = 0; i < ((ArrayData) v).size(); i++) out.add(show(e, get.getElementOrNull((ArrayData) v, i)));
                return out;
            }
            case MAP: case MULTISET: {
                ArrayNode out = JSON.createArrayNode();
                ArrayData keys = ((MapData) v).keyArray(), values = ((MapData) v).valueArray();
                ArrayData.ElementGetter key = ArrayData.createElementGetter(keyType(t)), get = ArrayData.createElementGetter(valueType(t));
                for (int i = 0; i < keys.size(); i++)
                    out.addArray().add(show(keyType(t), key.getElementOrNull(keys, i))).add(show(valueType(t), get.getElementOrNull(values, i)));
                return out;
            }
            case ROW: {
                ArrayNode out = JSON.createArrayNode();
                for (int i = 0; i < ((RowType) t).getFieldCount(); i++) {
                    LogicalType f = ((RowType) t).getTypeAt(i);
                    out.add(show(f, RowData.createFieldGetter(f, i).getFieldOrNull((RowData) v)));
                }
                return out;
            }
            default: return JSON.valueToTree(v);
        }
    }
}
