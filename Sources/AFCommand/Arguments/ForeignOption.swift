/// Options of curl, HTTPie and xh that this command does not have, and what to write instead.
enum ForeignOption {
  static func advice(_ name: String) -> String? { advice[name] }

  private static let method = "write the method in front of the URL: af PUT URL"
  private static let field = "write the field behind the URL: Name:text"
  private static let data = "write data behind the URL: name=text; --raw TEXT or @FILE is a whole body"

  private static let advice: [String: String] = [
    "-X": method, "--request": method, "-H": field, "--header": field,
    "--data": data, "--data-raw": data, "--data-binary": data, "--data-urlencode": data,
    "-G": "write the query behind the URL: name==text", "--get": "write the query behind the URL: name==text",
    "-e": "write Referer:URL", "--referer": "write Referer:URL",
    "--user-agent": "write User-Agent:text", "--cookie": "write Cookie:name=value",
    "-u": "write -a USER:PASS", "--user": "write -a USER:PASS",
    "--digest": "write -A digest -a USER:PASS", "--oauth2-bearer": "write --bearer TOKEN",
    "-i": "write -p hb", "--include": "write -p hb", "--head": "write af HEAD URL",
    "-s": "write -q", "--silent": "write -q",
    "-O": "write -d", "--remote-name": "write -d", "-T": "write @FILE", "--upload-file": "write @FILE",
    "-L": "redirects are followed", "--location": "redirects are followed",
    "--compressed": "responses are decoded", "--fail": "4xx and 5xx have an exit status of their own",
    "--cacert": "write --ca FILE", "--key": "write --cert-key FILE", "--pass": "write --cert-key-pass PASS",
    "-x": "write --proxy URL", "--connect-to": "write --resolve HOST:PORT:ADDRESS",
    "-m": "write --timeout SECONDS", "--max-time": "write --timeout SECONDS",
    "--connect-timeout": "write --timeout SECONDS",
    "-w": "write --timing", "--write-out": "write --timing", "--meta": "write --timing",
    "--http-version": "write --http1.1 or --http2",
    "-S": "bodies are written as they come", "--stream": "bodies are written as they come",
    "--all": "write -v, which shows every hop",
    "--style": "the colours are those of the terminal", "--unsorted": "fields keep their order",
    "--sorted": "fields keep their order", "--default-scheme": "write the scheme in front of the host",
  ]
}
