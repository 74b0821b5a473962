class Anyhook < Formula
  desc "Write an agent hook once. Run it under every coding agent. See what they did"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["Apache-2.0", "MIT"]

  on_macos do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/anyhook-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/anyhook-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@REPOSITORY@/releases/download/v@VERSION@/anyhook-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/anyhook-@VERSION@-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "anyhook"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/anyhook.bash" => "anyhook"
    zsh_completion.install "completions/_anyhook"
    fish_completion.install "completions/anyhook.fish"
  end

  service do
    run [opt_bin/"anyhook", "serve"]
    keep_alive crashed: true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/anyhook --version")
    assert_match "deny", shell_output("#{bin}/anyhook demo")
  end
end
