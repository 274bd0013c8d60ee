/// The colours of the output, where there are any: escape sequences of ANSI terminals, from the sixteen
/// colours that a user's own theme defines.
package struct Palette: Equatable, Sendable {
  package enum Style: Sendable {
    case plain, name, string, number, faint, good, notice, bad
  }

  package let isOn: Bool

  package init(isOn: Bool) {
    self.isOn = isOn
  }

  func paint(_ text: String, _ style: Style) -> String {
    guard isOn, let code = Self.code(style), !text.isEmpty else { return text }
    return "\u{1B}[\(code)m\(text)\u{1B}[0m"
  }

  private static func code(_ style: Style) -> String? {
    switch style {
    case .plain: nil
    case .name: "36"
    case .string: "32"
    case .number: "35"
    case .faint: "2"
    case .good: "1;32"
    case .notice: "1;33"
    case .bad: "1;31"
    }
  }
}
