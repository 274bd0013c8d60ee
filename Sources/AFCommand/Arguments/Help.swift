import Alamofire

/// The texts about the command itself.
package enum Help {
  /// All of it, on one screen of 80 columns.
  package static let text = """
    Usage: af [OPTION ...] [METHOD] URL [ITEM ...]

    METHOD is GET, or POST when there is data. URL may be short: :8080/path stands
    for http://localhost:8080/path, example.com for https://example.com.
    Items: name==text  query parameter         name=text   data: JSON or form text
           Name:text   header field            name:=json  data: number, list, ...
      -j, --json               data is a JSON object (default)
      -f, --form               data is a form
          --raw TEXT           the body as it is; - reads standard input
      -h, --headers            show only the headers of the response
      -b, --body               show only its body; so it is in a pipe by default
      -v, --verbose            show requests and redirects too, secrets masked
          --timing             show where the time went, on standard error
          --curl               print the curl command, secrets and all; send nothing
      -a, --auth USER:PASS     Basic authentication
          --timeout SECONDS    give up after so long without a byte (default 60)
          --max-redirects N    follow at most so many (default 20)
          --no-follow          show a redirect, do not follow it
          --ca FILE            trust the authorities in this PEM file alone
          --http1.1            never speak HTTP/2
          --no-check-status    exit with 0 whatever the response
          --help, --version
    Exits with 0, or 3, 4, 5 for 3xx, 4xx, 5xx; 1 without a response; 2 for usage.

    """

  /// The answer to `--version`.
  package static let version = "af \(AFInfo.version)\n"
}
