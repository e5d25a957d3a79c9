# fish completion for paddock. Load it with: paddock completion fish | source
function __paddock_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    or return
    set -l directive (string replace ':' '' -- $answer[-1])
    set -e answer[-1]
    if test (math "bitand($directive, 16)" 2>/dev/null; or echo 0) -ne 0
        __fish_complete_directories "$current"
    else if test (count $answer) -gt 0
        printf '%s\n' $answer
    else if test (math "bitand($directive, 4)" 2>/dev/null; or echo 4) -eq 0
        __fish_complete_path "$current"
    end
end
complete -c paddock -e
complete -c paddock -f -a '(__paddock_complete)'
