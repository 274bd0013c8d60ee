/// The charsets by their labels, as the Encoding Standard lists them (https://encoding.spec.whatwg.org, §4.2).
///
/// A converter has several names, the preferred one first. Browsers read some charsets as a larger one of Windows, and
/// so does this table. Two things differ. ASCII is read as UTF-8, and UTF-32 is known. The charsets that the standard
/// replaces by an error are unknown, and so is `x-user-defined`, which is not text.
enum CharsetLabels {
  /// The charset of each label, in lower case.
  static let all: [String: TextCharset] = Dictionary(
    (utf8.split(separator: " ").map { (String($0), TextCharset.utf8) })
      + groups.flatMap { labels, names, unit in
        labels.split(separator: " ").map { (String($0), TextCharset.converter(names: names, unit: unit)) }
      },
    uniquingKeysWith: { first, _ in first })

  private typealias Group = (labels: String, names: [String], unit: Int)

  private static let groups: [Group] =
    wide + (isoLatin + isoOthers + windows + others + asian).map { ($0, $1, 1) }

  private static let utf8 = """
    ansi_x3.4-1968 ascii unicode-1-1-utf-8 unicode11utf8 unicode20utf8 us-ascii utf-8 utf8 x-unicode20utf8
    """

  private static let wide: [Group] = [
    ("utf-16", ["UTF-16"], 2), ("unicodefffe utf-16be", ["UTF-16BE"], 2),
    ("csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16le", ["UTF-16LE"], 2),
    ("utf-32", ["UTF-32"], 4), ("utf-32le", ["UTF-32LE"], 4), ("utf-32be", ["UTF-32BE"], 4),
  ]

  private static let isoLatin: [(String, [String])] = [
    (
      "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
      ["ISO-8859-2"]
    ),
    (
      "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
      ["ISO-8859-3"]
    ),
    (
      "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
      ["ISO-8859-4"]
    ),
    ("csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6", ["ISO-8859-10"]),
    ("iso-8859-13 iso8859-13 iso885913", ["ISO-8859-13"]),
    ("iso-8859-14 iso8859-14 iso885914", ["ISO-8859-14"]),
    ("csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9", ["ISO-8859-15"]),
    ("iso-8859-16", ["ISO-8859-16"]),
  ]

  private static let isoOthers: [(String, [String])] = [
    (
      "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
      ["ISO-8859-5"]
    ),
    (
      "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i "
        + "iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987", ["ISO-8859-6"]
    ),
    (
      "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
        + "iso_8859-7:1987 sun_eu_greek", ["ISO-8859-7"]
    ),
    (
      "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 "
        + "iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical", ["ISO-8859-8"]
    ),
  ]

  private static let windows: [(String, [String])] = [
    ("dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874", ["CP874", "TIS-620"]),
    ("cp1250 windows-1250 x-cp1250", ["CP1250"]), ("cp1251 windows-1251 x-cp1251", ["CP1251"]),
    (
      "cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 "
        + "latin1 windows-1252 x-cp1252", ["CP1252", "ISO-8859-1"]
    ),
    ("cp1253 windows-1253 x-cp1253", ["CP1253"]),
    (
      "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
        + "windows-1254 x-cp1254", ["CP1254", "ISO-8859-9"]
    ),
    ("cp1255 windows-1255 x-cp1255", ["CP1255"]), ("cp1256 windows-1256 x-cp1256", ["CP1256"]),
    ("cp1257 windows-1257 x-cp1257", ["CP1257"]), ("cp1258 windows-1258 x-cp1258", ["CP1258"]),
  ]

  private static let others: [(String, [String])] = [
    ("866 cp866 csibm866 ibm866", ["CP866"]), ("cskoi8r koi koi8 koi8-r koi8_r", ["KOI8-R"]),
    ("koi8-ru koi8-u", ["KOI8-U"]), ("csmacintosh mac macintosh x-mac-roman", ["MACINTOSH"]),
    // The standard has the Ukrainian letters.
    ("x-mac-cyrillic x-mac-ukrainian", ["MAC-UK", "MAC-CYRILLIC"]),
  ]

  private static let asian: [(String, [String])] = [
    (
      "chinese csgb2312 csiso58gb231280 gb18030 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
      ["GB18030", "GBK"]
    ),
    ("big5 big5-hkscs cn-big5 csbig5 x-x-big5", ["BIG5-HKSCS", "BIG5"]),
    ("cseucpkdfmtjapanese euc-jp x-euc-jp", ["EUC-JP"]), ("csiso2022jp iso-2022-jp", ["ISO-2022-JP"]),
    (
      "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis", ["CP932", "SHIFT_JIS"]
    ),
    (
      "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
        + "windows-949", ["CP949", "EUC-KR"]
    ),
  ]
}
