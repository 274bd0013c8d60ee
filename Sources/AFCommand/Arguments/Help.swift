import Alamofire

/// The texts about the command itself.
package enum Help {
  /// The answer to `--help`, in at most 80 columns.
  package static var text: String {
    "\(usage)\n\(optionText)\n\(examples)\n\(exitText)"
  }

  /// The answer to `--version`.
  package static let version = "af \(AFInfo.version)\n"

  static let usage = """
    Usage: af [OPTION ...] [METHOD] URL [ITEM ...]
           af [OPTION ...] ws URL    messages: lines of the input and of the output
           af [OPTION ...] sse [METHOD] URL [ITEM ...]
               events; over as many connections as it takes, with data over one
           af [OPTION ...] image info|resize [METHOD] URL [ITEM ...]
               facts about an image; a file with it in another size

    METHOD is GET, or POST when there is data. URL may be short: :8080/path stands
    for http://localhost:8080/path, example.com for https://example.com.

    Items:
      name==text   query parameter          Name:text    header field
                                            Name:        leaves a field out
                                            Name;        field without a value
      name=text    data: text               name:=json   data: number, list, ...
      name@file    file of a form, with ;type=TYPE and ;filename=NAME if needed
      @file        the whole body; @- is standard input
      name=@file, name:=@file, name==@file, Name:@file   the value is in a file
      name=\\@text, name==\\@text, Name:\\@text   the value is @text
      a[b][c]=x, a[]=x, a[0]=x   nested JSON; a backslash keeps a [ literal

    """

  /// Commands and their effects. The manual page shows them too.
  static let exampleCommands = [
    ("af example.com q==text", "GET with a query"),
    ("af -v PUT :8080/people/7 name=Ada born:=1815", "JSON; shows the request too"),
    ("af -f example.com/form name=Ada photo@ada.jpg", "a multipart form with a file"),
    ("tar c . | af example.com/backup @-", "standard input, as it comes"),
    ("af -d example.com/file.iso", "saves the file under its own name"),
    ("af -A digest -a ann example.com", "asks for the password"),
    ("af --offline -p HB example.com a[b]:=1", "shows what would be sent"),
    ("af ws example.com/chat", "a WebSocket connection"),
    ("af image resize --size 400 -o small.webp example.com/a.jpg", "a thumbnail"),
    ("af -c -o file.iso example.com/file.iso", "gets the rest of a file"),
  ]

  static let exitCodes =
    "Exits with 0, or 3, 4, 5 for 3xx, 4xx, 5xx; 1 without a response; 2 for usage;\n"
    + "23 if the output cannot be written."

  private static var examples: String {
    "Examples:\n" + exampleCommands.map { "  \($0.0)\n      \($0.1)\n" }.joined()
  }

  private static var exitText: String {
    """
    --no-OPTION undoes an option, such as one of the file ~/.config/af/config.
    \(exitCodes)

    """
  }

  private static var optionText: String {
    Option.Group.allCases.map { group in
      let lines = Option.all.filter { $0.group == group }.map(line)
      return "\(group.rawValue):\n" + lines.joined()
    }.joined(separator: "\n")
  }

  private static func line(_ option: Option) -> String {
    let short = option.shortName.map { "\($0), " } ?? "    "
    let names = "  \(short)\(option.longName)\(option.placeholder.map { " \($0)" } ?? "")"
    let column = 27
    let gap = names.count < column ? String(repeating: " ", count: column - names.count) : " "
    return "\(names)\(gap)\(option.summary)\n"
  }
}

/// The manual page, in the language of man(7), generated from the table of options.
package enum ManualPage {
  package static var text: String {
    """
    .TH AF 1 "" "af \(AFInfo.version)" "User Commands"
    .SH NAME
    af \\- send HTTP requests and show the responses
    .SH SYNOPSIS
    .B af
    [\\fIOPTION\\fR ...] [\\fIMETHOD\\fR] \\fIURL\\fR [\\fIITEM\\fR ...]
    .br
    .B af
    [\\fIOPTION\\fR ...] ws \\fIURL\\fR [\\fIITEM\\fR ...]
    .br
    .B af
    [\\fIOPTION\\fR ...] sse [\\fIMETHOD\\fR] \\fIURL\\fR [\\fIITEM\\fR ...]
    .br
    .B af
    [\\fIOPTION\\fR ...] image info|resize [\\fIMETHOD\\fR] \\fIURL\\fR [\\fIITEM\\fR ...]
    .SH DESCRIPTION
    .B af
    sends a request. On a terminal it shows the head of the response and its body, with JSON laid out.
    In a pipe it writes the body as it comes.
    .PP
    \\fIMETHOD\\fR is GET, or POST when there is data. Without a scheme, \\fIURL\\fR is an https URL, or an http
    URL for this machine; \\fI:8080/path\\fR stands for \\fIhttp://localhost:8080/path\\fR.
    .PP
    \\fBaf ws\\fR opens a WebSocket connection. Each line of the standard input is sent as a message, and each message
    of the server is written as a line. At the end of the input the connection is closed.
    \\fBaf sse\\fR writes the data of server-sent events, and connects again when a connection ends.
    With data it sends one POST, and ends with the events of the response.
    .PP
    \\fBaf image info\\fR writes the format, the size and other facts of an image, a line for each.
    \\fBaf image resize\\fR writes it to the file of \\fB\\-\\-output\\fR, whose ending names the format, in the size of
    \\fB\\-\\-size\\fR, turned as the camera was held and without metadata. Both need libvips.
    .SH ITEMS
    \(items.map { ".TP\n.B \(escaped($0.0))\n\(escaped($0.1))" }.joined(separator: "\n"))
    .SH OPTIONS
    \(options)
    .PP
    \\fB\\-\\-no\\-\\fIOPTION\\fR undoes an option that stands before it, or in the file of default options.
    .SH EXAMPLES
    \(Help.exampleCommands.map { ".TP\n.B \(escaped($0.0))\n\(escaped($0.1))" }.joined(separator: "\n"))
    .SH EXIT STATUS
    .TP
    .B 0
    A response, of another class than those below.
    .TP
    .B 1
    No response came, or it could not be read or saved to its end.
    .TP
    .B 2
    The arguments are wrong.
    .TP
    .B 3, 4, 5
    A status of 3xx, 4xx or 5xx. \\fB\\-\\-no\\-check\\-status\\fR makes it 0.
    .TP
    .B 23
    The standard output could not be written. A reader that has seen enough, as in \\fIaf URL | head\\fR, is no error.
    .TP
    .B 130, 143
    SIGINT or SIGTERM has ended the request.
    .SH ENVIRONMENT
    .TP
    .B AF_CONFIG
    The file of default options; none if it is empty.
    .TP
    .B NO_COLOR
    If it is set, no colours are used.
    .TP
    .B http_proxy, https_proxy, all_proxy, no_proxy
    The proxies of requests.
    .SH FILES
    .TP
    .B ~/.config/af/config
    Default options, one per line, with the value after a space. It is in \\fI$XDG_CONFIG_HOME\\fR if that is set.
    .TP
    .B FILE.af-continue
    The journal of a file that \\fB\\-\\-output\\fR has not completed: its validator, its length, and the bytes
    that are on the disk. \\fB\\-\\-continue\\fR sends the validator, so that parts of two versions are never joined.
    .SH SEE ALSO
    .BR curl (1)

    """
  }

  private static let items = [
    ("name==text", "A query parameter."),
    ("Name:text", "A header field."),
    ("Name:", "Leaves out a header field that af would add, or that a session has."),
    ("Name;", "A header field without a value."),
    ("name=text", "A string of a JSON object, or a field of a form."),
    ("name:=json", "A JSON value, such as 36, true or [1, 2]."),
    ("name@file", "A file of a form. ;type=TYPE and ;filename=NAME after the path change its head."),
    ("@file", "The whole body; @- is standard input."),
    ("name=@file, name:=@file, name==@file, Name:@file", "The value is the content of a file."),
    (#"name=\@text, name==\@text, Name:\@text"#, "The value is @text itself."),
    (
      "a[b][c]=x, a[]=x, a[0]=x",
      "Members of nested objects and arrays. A backslash before a bracket keeps it literal."
    ),
  ]

  private static var options: String {
    Option.Group.allCases.map { group in
      ".SS \(group.rawValue)\n"
        + Option.all.filter { $0.group == group }.map { option in
          let value = option.placeholder.map { " \\fI\(escaped($0))\\fR" } ?? ""
          let names = option.names.map { "\\fB\(escaped($0))\\fR\(value)" }.joined(separator: ", ")
          return ".TP\n\(names)\n\(escaped(sentence(option.summary)))"
        }.joined(separator: "\n")
    }.joined(separator: "\n")
  }

  private static func sentence(_ summary: String) -> String {
    summary.prefix(1).uppercased() + summary.dropFirst() + "."
  }

  /// Escapes backslashes and minuses, because an unescaped minus is a hyphen. A dot or an apostrophe at the start of
  /// a line would begin a request.
  private static func escaped(_ text: String) -> String {
    let body = text.map { character in
      switch character {
      case "\\": "\\e"
      case "-": "\\-"
      default: String(character)
      }
    }.joined()
    return body.hasPrefix(".") || body.hasPrefix("'") ? "\\&" + body : body
  }
}
