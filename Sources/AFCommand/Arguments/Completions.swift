import Foundation

/// The completions of shells, generated from the table of options.
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
      case .files: "    \(pattern)) _af_reply \"$before\" -f -- \"$word\"; return ;;\n"
      case .sessions:
        "    \(pattern)) _af_reply \"$before\" sessions -f -- \"$word\"; return ;;\n"
      case .words(let words):
        "    \(pattern)) _af_reply \"$before\" -W '\(words.joined(separator: " "))' -- \"$word\"; return ;;\n"
      case .none: "    \(pattern)) return ;;\n"
      }
    }
    return """
      # bash completion for af
      # _af_sessions WORD: the names of sessions that begin with WORD. `compgen -W` would run commands in them.
      _af_sessions() {
        local file name
        for file in "${XDG_DATA_HOME:-$HOME/.local/share}"/af/sessions/*/*.json; do
          name=${file##*/}
          name=${name%.json}
          case $name in "$1"*) if [ -e "$file" ]; then printf '%s\\n' "$name"; fi ;; esac
        done | sort -u
      }
      # _af_words [sessions] ARGUMENT...: the words of `compgen ARGUMENT...`, and names of sessions before them.
      _af_words() {
        if [ "$1" = sessions ]; then
          shift
          _af_sessions "${!#}"
        fi
        compgen "$@"
      }
      # _af_reply BEFORE ARGUMENT...: completes with `_af_words ARGUMENT...`, after the text BEFORE. bash replaces what
      # follows the last separator of words, so that the text up to it is left out.
      _af_reply() {
        local before=$1 typed=$1${!#} kept reply
        shift
        kept=${typed%"${typed##*[$COMP_WORDBREAKS]}"}
        COMPREPLY=()
        while IFS= read -r reply; do
          reply=$before$reply
          COMPREPLY+=("${reply#"$kept"}")
        done < <(_af_words "$@")
        case " $* " in *" -f "*) compopt -o filenames 2> /dev/null ;; esac
      }
      _af() {
        local word=${COMP_WORDS[COMP_CWORD]} previous= before= line
        if [ "$COMP_CWORD" -gt 0 ]; then previous=${COMP_WORDS[COMP_CWORD - 1]}; fi
        # The words are divided at `@`, `=` and `:`, which are parts of items.
        if [ -n "$COMP_LINE" ]; then
          line=${COMP_LINE:0:COMP_POINT}
          word=${line##*[[:space:]]}
          line=${line%"$word"}
          line=${line%"${line##*[![:space:]]}"}
          previous=${line##*[[:space:]]}
        fi
        COMPREPLY=()
        case "$word" in --*=*) previous=${word%%=*} before=${word%%=*}= word=${word#*=} ;; esac
        case "$previous" in
      \(cases.joined())  esac
        case "$word" in
          -*) _af_reply '' -W '\(Option.all.flatMap(\.names).joined(separator: " "))' -- "$word" ;;
          *@*) _af_reply "${word%%@*}@" -f -- "${word#*@}" ;;
          *) _af_reply '' -W '\(methods.joined(separator: " "))' -- "$word" ;;
        esac
      }
      complete -o nospace -F _af af

      """
  }

  // MARK: zsh

  private static var zsh: String {
    let lines = Option.all.map { option in
      let value = option.placeholder.map { name in
        let action =
          switch option.completion {
          case .files: "_files"
          case .sessions: "_af_sessions"
          case .words(let words): "(\(words.joined(separator: " ")))"
          case .none: ""
          }
        return ":\(zshEscaped(name)):\(action)"
      }
      let text = "[\(zshEscaped(option.summary))]\(value ?? "")"
      // A value follows `--name=` and `-n`, or is the next word.
      let (longEnd, shortEnd) = value == nil ? ("", "") : ("=", "+")
      guard let short = option.shortName else { return "    '\(option.longName)\(longEnd)\(text)' \\\n" }
      let names = "{\(option.longName)\(longEnd),\(short)\(shortEnd)}"
      return "    '(\(option.longName) \(short))'\(names)'\(text)' \\\n"
    }
    return """
      #compdef af
      _af_sessions() {
        local -a names
        names=(${XDG_DATA_HOME:-$HOME/.local/share}/af/sessions/*/*.json(N:t:r))
        compadd -a names
        _files
      }
      _af_items() {
        # A file follows the first `@` of an item.
        compset -P 1 '*@' && _files
      }
      _af() {
        _arguments -s \\
      \(lines.joined())    '1:method or URL:(\(methods.joined(separator: " ")))' \\
          '*:item:_af_items'
      }
      _af "$@"

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
    let methods = methods.joined(separator: " ")
    let lines = Option.all.map { option in
      var line = "complete -c af"
      if let short = option.shortName { line += " -s \(short.dropFirst())" }
      line += " -l \(option.longName.dropFirst(2))"
      if option.placeholder != nil {
        switch option.completion {
        case .files: line += " -r -F"
        case .sessions: line += " -r -F -a '(__af_sessions)'"
        case .words(let words): line += " -x -a '\(words.joined(separator: " "))'"
        case .none: line += " -x"
        }
      }
      return line + " -d '\(option.summary.replacingOccurrences(of: "'", with: "\\'"))'\n"
    }
    return """
      # fish completion for af
      function __af_sessions
        set -l data $HOME/.local/share
        set -q XDG_DATA_HOME; and test -n "$XDG_DATA_HOME"; and set data $XDG_DATA_HOME
        for file in $data/af/sessions/*/*.json
          string replace -r '.*/(.*)\\.json$' '$1' -- $file
        end
      end
      function __af_files
        # The word as it is typed may have a quote that is not closed yet.
        set -l word
        for quote in '' \\' '"'
          set word (string unescape -- (commandline -ct)$quote); and break
        end
        set -l parts (string split -m 1 @ -- $word)
        set -l path $parts[2]
        set -l before $parts[1]@
        set -l from 1
        # af replaces a `~` after the `@`, which fish leaves alone.
        if string match -q '~/*' -- $path
          set path $HOME(string sub -s 2 -- $path)
          set before $before~
          set from (math 1 + (string length -- $HOME))
        end
        for file in (__fish_complete_path $path)
          echo $before(string sub -s $from -- $file)
        end
      end
      complete -c af -f
      \(lines.joined())complete -c af -n 'string match -q "*@*" -- (commandline -ct)' -a '(__af_files)'
      complete -c af -n 'not __fish_seen_subcommand_from \(methods)' -a '\(methods)'

      """
  }
}
