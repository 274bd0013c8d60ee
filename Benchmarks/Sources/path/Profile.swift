import Alamofire

#if PROFILED
  @_silgen_name("__llvm_profile_reset_counters") private func resetCounters()
  @_silgen_name("__llvm_profile_set_filename") private func setFilename(_ name: UnsafePointer<CChar>)
  @_silgen_name("__llvm_profile_write_file") private func writeFile() -> Int32
#endif

/// The counters of executed lines. The counters exist only if the build has the options that `Scripts/path` gives.
enum Profile {
  static func reset() {
    #if PROFILED
      resetCounters()
    #endif
  }

  /// Writes the counters of the lines that were executed since the last reset.
  static func write(to file: String) throws {
    #if PROFILED
      setFilename(file)
      guard writeFile() == 0 else { throw Problem("the profile could not be written to \(file)") }
      setFilename("/dev/null")  // because the profile is written once more at the end of the process
    #else
      throw Problem("this build counts no lines; use Scripts/path")
    #endif
  }
}
