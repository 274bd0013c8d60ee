import Testing

@testable import AFCommand

/// Options of HTTPie and curl: the command has them, or says what to write instead.
@Suite struct ForeignOptionTests {
  /// The options of HTTPie 3.2.
  private static let httpie = """
    --json -j --form -f --multipart --boundary --raw --compress -x --chunked --pretty --style -s --unsorted --sorted
    --response-charset --response-mime --format-options --print -p --headers -h --meta -m --body -b --verbose -v --all
    --history-print -P --stream -S --output -o --download -d --continue -c --quiet -q --session --session-read-only
    --auth -a --auth-type -A --ignore-netrc --offline --proxy --follow -F --max-redirects --max-headers --timeout
    --check-status --path-as-is --verify --ssl --ciphers --cert --cert-key --cert-key-pass --ignore-stdin -I --help
    --manual --version --traceback --default-scheme --debug
    """

  /// The options of curl 7.88 for HTTP requests, but for rare ones of proxies and TLS.
  private static let curl = """
    --abstract-unix-socket --anyauth --basic --cacert --capath --cert -E --cert-type --ciphers --compressed --config
    -K --connect-timeout --connect-to --continue-at -C --cookie -b --cookie-jar -c --create-dirs --data -d
    --data-ascii --data-binary --data-raw --data-urlencode --digest --dump-header -D --expect100-timeout --fail -f
    --fail-with-body --form -F --form-string --get -G --globoff -g --head -I --header -H --help --http1.0 -0 --http1.1
    --http2 --http2-prior-knowledge --http3 --include -i --insecure -k --interface --ipv4 -4 --ipv6 -6 --json
    --rate --junk-session-cookies -j --key --libcurl --limit-rate --location -L --location-trusted --manual --max-filesize
    --max-redirs --max-time -m --negotiate --netrc -n --netrc-file --netrc-optional --next --no-buffer -N --no-clobber
    --no-progress-meter --noproxy --ntlm --oauth2-bearer --output -o --output-dir --parallel -Z --pass --path-as-is
    --pinnedpubkey --post301 --post302 --progress-bar -# --proto-default --proxy -x --proxy-user -U --proxytunnel -p
    --range -r --referer -e --remote-header-name -J --remote-name -O --remote-time -R --request -X --resolve --retry
    --retry-all-errors --retry-connrefused --retry-delay --retry-max-time --show-error -S --silent -s --socks4
    --socks4a --socks5 --socks5-hostname --speed-limit -Y --speed-time -y --ssl --time-cond -z --tls-max
    --tls13-ciphers --tlsv1.2 --tlsv1.3 --trace --trace-ascii --unix-socket --upload-file -T --url --url-query --user
    -u --user-agent -A --verbose -v --version --write-out -w
    """

  @Test(
    "An option of HTTPie or curl exists, or its error says what to write instead", arguments: [httpie, curl])
  func names(list: String) {
    let known = Set(Option.all.flatMap(\.names))
    for name in list.split(whereSeparator: \.isWhitespace).map(String.init) {
      #expect(known.contains(name) != (ForeignOption.advice(name) != nil), "\(name)")
    }
  }

  @Test("The advice names options that exist")
  func advice() {
    let known = Set(Option.all.flatMap(\.names))
    for name in Set((Self.httpie + " " + Self.curl).split(whereSeparator: \.isWhitespace).map(String.init)) {
      let words = (ForeignOption.advice(name) ?? "").split { " :;,".contains($0) }.map(String.init)
      #expect(words.filter { $0.hasPrefix("--") }.allSatisfy(known.contains), "\(name)")
    }
  }
}
