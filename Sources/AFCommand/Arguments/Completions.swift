import Foundation

/// The completions of shells, made of the table of options.
package enum Completions {
  package enum Shell: String, CaseIterable, Sendable {
    case bash, zsh, fish
  }

  /// Returns the script for a shell.
  package static func text(for shell: Shell) -> String {
    switch shell {
    case .bash: bash
    case .zsh: zsh
    case .fish: fish
    }
  }

  private static let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]

  // MARK: bash

  private static var bash: String {
    let cases = Option.all.compactMap { option -> String? in
      guard option.placeholder != nil else { return nil }
      let pattern = option.names.joined(separator: " | ")
      return switch option.completion {
      case .files: "    \(pattern)) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
      case .words(let words):
        "    \(pattern)) COMPREPLY=($(compgen -W '\(words.joined(separator: " "))' -- \"$word\")); return ;;\n"
      case .none: "    \(pattern)) return ;;\n"
      }
    }
    return """
      # bash completion for af
      _af() {
        local word=${COMP_WORDS[COMP_CWORD]} previous=
        if [ "$COMP_CWORD" -gt 0 ]; then previous=${COMP_WORDS[COMP_CWORD - 1]}; fi
        COMPREPLY=()
        case "$previous" in
      \(cases.joined())  esac
        case "$word" in
          -*) COMPREPLY=($(compgen -W '\(Option.all.flatMap(\.names).joined(separator: " "))' -- "$word")) ;;
          *@*) COMPREPLY=($(compgen -f -P "${word%%@*}@" -- "${word#*@}")) ;;
          *) COMPREPLY=($(compgen -W '\(methods.joined(separator: " "))' -- "$word")) ;;
        esac
      }
      complete -o nospace -F _af af

      """
  }

  // MARK: zsh

  private static var zsh: String {
    let lines = Option.all.map { option in
      let value =
        switch (option.placeholder, option.completion) {
        case (nil, _): ""
        case (let name?, .files): ":\(name):_files"
        case (let name?, .words(let words)): ":\(name):(\(words.joined(separator: " ")))"
        case (let name?, .none): ":\(name):"
        }
      let text = "[\(zshEscaped(option.summary))]\(value)"
      let takesValue = option.placeholder == nil ? "" : "="
      guard let short = option.shortName else { return "  '\(option.longName)\(takesValue)\(text)' \\\n" }
      return "  '(\(option.longName) \(short))'{\(option.longName)\(takesValue),\(short)}'\(text)' \\\n"
    }
    return """
      #compdef af
      _arguments -s \\
      \(lines.joined())  '1:method or URL:(\(methods.joined(separator: " ")))' \\
        '*:item:_files'

      """
  }

  private static func zshEscaped(_ text: String) -> String {
    text.map { character in
      switch character {
      case "[", "]", ":": "\\\(character)"
      case "'": "'\\''"
      default: String(character)
      }
    }.joined()
  }

  // MARK: fish

  private static var fish: String {
    let lines = Option.all.map { option in
      var line = "complete -c af"
      if let short = option.shortName { line += " -s \(short.dropFirst())" }
      line += " -l \(option.longName.dropFirst(2))"
      if option.placeholder != nil {
        switch option.completion {
        case .files: line += " -r -F"
        case .words(let words): line += " -x -a '\(words.joined(separator: " "))'"
        case .none: line += " -x"
        }
      }
      return line + " -d '\(option.summary.replacingOccurrences(of: "'", with: "\\'"))'\n"
    }
    return "# fish completion for af\n" + lines.joined()
      + "complete -c af -n __fish_use_subcommand -a '\(methods.joined(separator: " "))'\n"
  }
}
