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
